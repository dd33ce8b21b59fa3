//! The rules that a plugin must meet to be loaded.

crate::names! {
    /// The rules for loading a plugin. The names are stable, because documents and tests refer to them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum LoadRule {
        /// The plugin's name is valid.
        PluginName = "plugin-name",
        /// The file is readable and not too large.
        ComponentFile = "component-file",
        /// The bytes are a component that the engine accepts.
        InvalidComponent = "invalid-component",
        /// The component's structure is within bounds that real toolchains never exceed.
        ComponentStructure = "component-structure",
        /// The component compiles within the operator's bounds.
        CompileCost = "compile-cost",
        /// The component was built against an interface version that this host supports.
        UnknownInterface = "unknown-interface",
        /// Every import exists and is granted.
        ImportNotGranted = "import-not-granted",
        /// The operator's grants are for this component, not for another one under the same name.
        NeedsReview = "needs-review",
        /// The component has a declaration, if the operator requires one.
        DeclarationMissing = "declaration-missing",
        /// The section with the declaration is readable.
        DeclarationForm = "declaration-form",
        /// The section equals the result of `tools()`.
        DeclarationDiffers = "declaration-differs",
        /// The component lists its tools within its limits.
        Catalog = "catalog",
        /// A plugin does not have too many tools.
        TooManyTools = "too-many-tools",
        /// A human tool is not gated: approving a question would be circular.
        GatedHuman = "gated-human",
        /// A provider tool is not gated: the host cannot stop it before it runs.
        GatedProvider = "gated-provider",
        /// A component with a server tool exports `server`.
        NoServer = "no-server",
        /// A tool's name has the form that models accept.
        ToolName = "tool-name",
        /// A plugin uses a tool name once.
        ToolNameTwice = "tool-name-twice",
        /// No other live plugin uses the tool name.
        ToolNameTaken = "tool-name-taken",
        /// The description is not empty and not too long.
        Description = "description",
        /// Only a server or client tool reports progress.
        Streaming = "streaming",
        /// A schema is valid JSON Schema, by the rules of its draft.
        SchemaInvalid = "schema-invalid",
        /// The schema of the arguments is an object's.
        SchemaNotObject = "schema-not-object",
        /// A schema refers only to itself.
        SchemaRemote = "schema-remote",
        /// A schema's references end, at a bounded cost.
        SchemaCycle = "schema-cycle",
        /// A schema is not too large.
        SchemaSize = "schema-size",
        /// A schema is not nested too deeply.
        SchemaDepth = "schema-depth",
        /// The options are a JSON object of bounded size with distinct keys.
        OptionsForm = "options-form",
        /// The option exists.
        OptionUnknown = "option-unknown",
        /// An option's value has the form of that option.
        OptionForm = "option-form",
        /// An option applies to this kind of tool.
        OptionScope = "option-scope",
        /// The options do not contradict each other or the declaration.
        OptionContradiction = "option-contradiction",
        /// A prompt is a template over the arguments.
        Prompt = "prompt",
        /// A timeout approves only where the operator allows it.
        ApproveOnExpiry = "approve-on-expiry",
        /// The operator's rules do not gate a human tool.
        PolicyHuman = "policy-human",
        /// The operator's rules do not gate a provider tool.
        PolicyProvider = "policy-provider",
        /// The operator's settings are consistent.
        Settings = "settings",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = LoadRule::NAMES.into_iter().collect();
        assert_eq!(names.len(), LoadRule::ALL.len());
        assert!(!names.contains(""));
    }
}
