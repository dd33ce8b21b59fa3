//! The reasons why a plugin is not loaded: which tool, which rule, and what to change.

use std::fmt;

use capabilities::Capability;
use domain::LoadRule;

use crate::json::quoted;

/// One reason why a plugin is not loaded.
///
/// Its text is a sentence for the plugin's author or the operator. It is safe to print: quotes from the plugin are
/// escaped and shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The tool that it is about: its name, or its position and its escaped invalid name.
    pub tool: Option<String>,
    pub rule: LoadRule,
    /// The capability whose grant is missing. `None`: no grant helps.
    pub capability: Option<Capability>,
    pub message: String,
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

/// The findings so far, and the tool that is being checked.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    tool: Option<String>,
}

impl Findings {
    /// Later findings are about the tool at this position.
    pub(crate) fn about(&mut self, position: usize, name: &str) {
        let valid = domain::ToolName::new(name).is_ok();
        self.tool = Some(if valid { name.to_owned() } else { format!("number {} {}", position + 1, quoted(name)) });
    }

    /// Later findings are about the plugin as a whole.
    pub(crate) fn about_plugin(&mut self) {
        self.tool = None;
    }

    pub(crate) fn add(&mut self, rule: LoadRule, message: impl Into<String>, remedy: impl Into<String>) {
        let (tool, message, remedy) = (self.tool.clone(), message.into(), remedy.into());
        self.list.push(Finding { tool, rule, capability: None, message, remedy });
    }

    /// An import that needs a grant of this capability.
    pub(crate) fn add_ungranted(&mut self, capability: Capability, message: String, remedy: String) {
        let rule = LoadRule::ImportNotGranted;
        self.list.push(Finding { tool: self.tool.clone(), rule, capability: Some(capability), message, remedy });
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_tool_and_remedy_and_is_escaped() {
        let mut findings = Findings::default();
        findings.about(1, "a\u{202e}b\n");
        findings.add(LoadRule::ToolName, "wrong", "rename it");
        let all = findings.into_vec();
        assert_eq!(all[0].to_string(), r#"tool number 2 "a\u{202e}b\n": wrong; rename it"#);
    }
}
