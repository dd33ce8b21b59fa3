//! Notes: the parts of a declaration that have less effect than its author may expect. The plugin is loaded all the same.

use std::fmt;

use domain::{Limits, Tool, ToolName, tool::Executor};

/// A part of a tool's declaration that the operator's settings reduce.
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
    let of_tool = |tool: &'a Tool| shortened(tool, limits).map(|message| Note { tool: tool.name.clone(), message });
    tools.into_iter().filter_map(of_tool).collect()
}

fn shortened(tool: &Tool, limits: &Limits) -> Option<String> {
    let is_longer = |timeout: &domain::Span| tool.executor == Executor::Server && *timeout > limits.time;
    let (timeout, max) = (tool.options.timeout.filter(is_longer)?.millis(), limits.time.millis());
    Some(format!(
        "`timeout_ms` is {timeout}, and the limit `limits.time_ms` of this plugin is {max}; each run ends after {max} ms"
    ))
}
