//! Notes: the parts of a declaration that the operator's settings reduce. The plugin is loaded all the same.

use std::fmt;

use domain::{Limits, Tool, ToolName, tool::Executor};

/// A part of a tool's declaration that this host reduces.
///
/// Its text is a sentence for the plugin's author or the operator. It is safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub tool: ToolName,
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool {}: {}", self.tool, self.message)
    }
}

/// The notes about tools that run under these limits.
pub(crate) fn notes<'a>(tools: impl IntoIterator<Item = &'a Tool>, limits: &Limits) -> Vec<Note> {
    let shortened = |tool: &Tool| {
        let max = limits.time.millis();
        let timeout =
            tool.options.timeout.filter(|timeout| tool.executor == Executor::Server && *timeout > limits.time)?;
        let message = format!(
            "`timeout_ms` is {}, and the limit `limits.time_ms` of this plugin is {max}; each run ends after {max} ms",
            timeout.millis()
        );
        Some(Note { tool: tool.name.clone(), message })
    };
    tools.into_iter().filter_map(shortened).collect()
}
