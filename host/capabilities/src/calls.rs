//! Calls of other tools, through `durable.call-tools`. Every guest of a durable tool can import that function, so this
//! capability links nothing. [`refusal`] decides about each call: in the sandbox when the guest asks, and in the registry before a
//! call starts.

mod grant;

use domain::PluginName;
use wasmtime::Result;
use wasmtime::component::Linker;

pub use self::grant::{RequestedTools, ToolPattern};
use crate::interface::{GrantOf, Granted, Interface, NewCall};
use crate::view::CallView;

/// The capability has no state in a call.
#[derive(Default)]
pub struct State;

impl Interface for State {
    type Service = ();
    type Granted = Vec<ToolPattern>;

    fn is_behind(_: &str, _: &str, _: &str) -> bool {
        false
    }

    fn begin((): &(), _: &NewCall<'_>, _: Option<Granted<'_, GrantOf<Vec<ToolPattern>>>>) -> Self {
        Self
    }

    fn link<T: CallView<Self>>(_: &mut Linker<T>) -> Result<()> {
        Ok(())
    }
}

/// Why a component with these grants may not call these tools. `None` if it may.
#[must_use]
pub fn refusal<'a>(
    plugin: &PluginName,
    granted: &impl AsRef<Vec<ToolPattern>>,
    tools: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let denied = |tool: &&str| !granted.as_ref().iter().any(|pattern| pattern.matches(tool));
    let tool = tools.into_iter().find(denied)?;
    Some(format!(
        "the plugin {plugin} may not call {tool:?}: its manifest must request the tool under `wants.calls`, and the operator must \
         grant it to this component with `grants.calls = [\"{tool}\"]` in the plugin's table of toolgate.toml"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::GrantRequest;

    fn pattern(text: &str) -> ToolPattern {
        ToolPattern::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn pattern_matches_a_name_or_a_beginning() {
        for (text, tool, is_match) in [
            ("ledger_post", "ledger_post", true),
            ("ledger_post", "ledger_post2", false),
            ("ledger_*", "ledger_post", true),
            ("ledger_*", "ledger_", true),
            ("ledger_*", "ledger", false),
            ("*", "anything", true),
        ] {
            assert_eq!(pattern(text).matches(tool), is_match, "{text} {tool}");
        }
        for wrong in ["", "a*b", "**", "a b", "é", "a.b"] {
            assert!(ToolPattern::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn plugin_calls_what_is_granted_and_requested() {
        let requests = |texts: &[&str]| -> Vec<RequestedTools> {
            texts.iter().map(|text| RequestedTools { tool: pattern(text), why: "it must".into() }).collect()
        };
        let both = |granted: &[&str], requested: &[&str]| {
            let granted: Vec<ToolPattern> = granted.iter().map(|text| pattern(text)).collect();
            let both = RequestedTools::intersection(&granted, &requests(requested));
            both.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(both(&["ledger_*"], &["ledger_post"]), ["ledger_post"]);
        assert_eq!(both(&["ledger_post"], &["*"]), ["ledger_post"]);
        assert_eq!(both(&["ledger_*", "forge_*"], &["ledger_*"]), ["ledger_*"]);
        assert!(both(&["ledger_*"], &["forge_*"]).is_empty());
        assert!(both(&["*"], &[]).is_empty());
    }

    #[test]
    fn refusal_names_the_tool() {
        let (plugin, tools) = (PluginName::new("rollout").unwrap(), ["ledger_post", "forge_merge"]);
        assert!(refusal(&plugin, &vec![pattern("*")], tools).is_none());
        let text = refusal(&plugin, &vec![pattern("ledger_*")], tools).unwrap();
        assert!(text.contains("forge_merge") && !text.contains("ledger_post"), "{text}");
    }
}
