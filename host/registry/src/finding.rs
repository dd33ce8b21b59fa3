//! What is wrong with a plugin: which tool, which rule, and what to change.

use std::fmt;

use crate::json::quoted;

/// The rules that a plugin must keep to be loaded. The names are stable: documentation and tests refer to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadRule {
    /// The plugin has a name that it may have.
    PluginName,
    /// The file can be read, and is not larger than a component may be.
    ComponentFile,
    /// The bytes are a component that the engine takes.
    InvalidComponent,
    /// The component has the shape of something that a toolchain made.
    ComponentStructure,
    /// The component compiles within the operator's bounds.
    CompileCost,
    /// The component is written against a version of the interface that this host knows.
    UnknownInterface,
    /// Everything that the component imports exists and was granted to it.
    ImportNotGranted,
    /// The operator's grants are for this component and not for another one of its name.
    NeedsReview,
    /// The component carries its declaration, where the operator requires that.
    DeclarationMissing,
    /// The section with its declaration can be read.
    DeclarationForm,
    /// The section says what `tools()` says.
    DeclarationDiffers,
    /// The component says what tools it has, within its limits.
    Catalog,
    /// A plugin has no more tools than a host takes from one.
    TooManyTools,
    /// A question is not gated: approving it would be circular.
    GatedHuman,
    /// A provider's call is not gated: there is no moment before it.
    GatedProvider,
    /// A component with a server tool exports `server`.
    NoServer,
    /// A tool's name is of the form that models accept.
    ToolName,
    /// A name is used once in a plugin.
    ToolNameTwice,
    /// No other live plugin uses the name.
    ToolNameTaken,
    /// There is a description, of bounded size.
    Description,
    /// Only a tool that somebody runs for the host reports progress.
    Streaming,
    /// A schema is valid JSON Schema of draft 2020-12.
    SchemaInvalid,
    /// The arguments are an object.
    SchemaNotObject,
    /// A schema refers to nothing outside itself.
    SchemaRemote,
    /// A schema's references lead somewhere at a bounded cost.
    SchemaCycle,
    /// A schema is not too large.
    SchemaSize,
    /// A schema is not nested too deeply.
    SchemaDepth,
    /// The options are a JSON object, each key once, of bounded size.
    OptionsForm,
    /// There is an option of this name.
    OptionUnknown,
    /// An option's value has its form.
    OptionForm,
    /// An option says something about this kind of tool.
    OptionScope,
    /// Options do not contradict each other or the declaration.
    OptionContradiction,
    /// A prompt is a template over the arguments.
    Prompt,
    /// Silence approves only where the operator allows it.
    ApproveOnExpiry,
    /// The operator's policy does not gate a question.
    PolicyHuman,
    /// The operator's policy does not gate a provider's call.
    PolicyProvider,
    /// The operator's settings mean something.
    Settings,
}

impl LoadRule {
    /// Every rule with its name.
    pub const ALL: [(Self, &'static str); 37] = [
        (Self::PluginName, "plugin-name"),
        (Self::ComponentFile, "component-file"),
        (Self::InvalidComponent, "invalid-component"),
        (Self::ComponentStructure, "component-structure"),
        (Self::CompileCost, "compile-cost"),
        (Self::UnknownInterface, "unknown-interface"),
        (Self::ImportNotGranted, "import-not-granted"),
        (Self::NeedsReview, "needs-review"),
        (Self::DeclarationMissing, "declaration-missing"),
        (Self::DeclarationForm, "declaration-form"),
        (Self::DeclarationDiffers, "declaration-differs"),
        (Self::Catalog, "catalog"),
        (Self::TooManyTools, "too-many-tools"),
        (Self::GatedHuman, "gated-human"),
        (Self::GatedProvider, "gated-provider"),
        (Self::NoServer, "no-server"),
        (Self::ToolName, "tool-name"),
        (Self::ToolNameTwice, "tool-name-twice"),
        (Self::ToolNameTaken, "tool-name-taken"),
        (Self::Description, "description"),
        (Self::Streaming, "streaming"),
        (Self::SchemaInvalid, "schema-invalid"),
        (Self::SchemaNotObject, "schema-not-object"),
        (Self::SchemaRemote, "schema-remote"),
        (Self::SchemaCycle, "schema-cycle"),
        (Self::SchemaSize, "schema-size"),
        (Self::SchemaDepth, "schema-depth"),
        (Self::OptionsForm, "options-form"),
        (Self::OptionUnknown, "option-unknown"),
        (Self::OptionForm, "option-form"),
        (Self::OptionScope, "option-scope"),
        (Self::OptionContradiction, "option-contradiction"),
        (Self::Prompt, "prompt"),
        (Self::ApproveOnExpiry, "approve-on-expiry"),
        (Self::PolicyHuman, "policy-human"),
        (Self::PolicyProvider, "policy-provider"),
        (Self::Settings, "settings"),
    ];

    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(rule, _)| *rule == self).map_or("", |(_, name)| name)
    }
}

/// One thing that keeps a plugin from being loaded.
///
/// Its text form is a sentence for the plugin's author or the operator, safe to print: what it quotes of a plugin is
/// escaped and cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The tool, where it is about one: its name, or its position and an escaped form of what it has for a name.
    pub tool: Option<String>,
    /// The rule that is broken.
    pub rule: LoadRule,
    /// What is wrong.
    pub message: String,
    /// What to change.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tool) = &self.tool {
            write!(f, "tool {tool}: ")?;
        }
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

/// The findings so far, and the tool that is being looked at.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    tool: Option<String>,
}

impl Findings {
    /// What follows is about the tool at this position.
    pub(crate) fn about(&mut self, position: usize, name: &str) {
        let valid = domain::ToolName::new(name).is_ok();
        self.tool = Some(if valid { name.to_owned() } else { format!("number {} {}", position + 1, quoted(name)) });
    }

    /// What follows is about the plugin as a whole.
    pub(crate) fn about_plugin(&mut self) {
        self.tool = None;
    }

    /// Adds one.
    pub(crate) fn add(&mut self, rule: LoadRule, message: impl Into<String>, remedy: impl Into<String>) {
        self.list.push(Finding { tool: self.tool.clone(), rule, message: message.into(), remedy: remedy.into() });
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// All of them, in the order in which they were found.
    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = LoadRule::ALL.iter().map(|(rule, _)| rule.as_str()).collect();
        assert_eq!(names.len(), LoadRule::ALL.len());
        assert!(!names.contains(""));
    }

    #[test]
    fn a_finding_says_where_what_and_what_to_do_and_cannot_forge_a_line() {
        let mut findings = Findings::default();
        findings.about(1, "a\u{202e}b\n");
        findings.add(LoadRule::ToolName, "wrong", "rename it");
        let all = findings.into_vec();
        assert_eq!(all[0].to_string(), r#"tool number 2 "a\u{202e}b\n": wrong; rename it"#);
    }
}
