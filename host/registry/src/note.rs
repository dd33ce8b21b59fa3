//! Notes: the parts of a declaration that have less effect than its author may expect. The plugin is loaded all the same.

use std::fmt;

use domain::{
    Limits, Tool, ToolName,
    tool::{Executor, Recovery},
};

/// A part of a tool's declaration that the operator's settings reduce, or that has no effect.
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
    let of_tool = |tool: &'a Tool| {
        let messages = [shortened(tool, limits), without_recovery(tool)].into_iter().flatten();
        messages.map(move |message| Note { tool: tool.name.clone(), message })
    };
    tools.into_iter().flat_map(of_tool).collect()
}

fn shortened(tool: &Tool, limits: &Limits) -> Option<String> {
    let is_longer = |timeout: &domain::Span| tool.executor == Executor::Server && *timeout > limits.time;
    let (timeout, max) = (tool.options.timeout.filter(is_longer)?.millis(), limits.time.millis());
    Some(format!(
        "`timeout_ms` is {timeout}, and the limit `limits.time_ms` of this plugin is {max}; each run ends after {max} ms"
    ))
}

fn without_recovery(tool: &Tool) -> Option<String> {
    let declared = match tool.options.recovery {
        Recovery::Retry => None,
        Recovery::Ask => Some("ask"),
        Recovery::Fail => Some("fail"),
    };
    declared.filter(|_| tool.options.durable).map(|recovery| {
        format!(
            "`recovery` is `\"{recovery}\"` and has no effect, because the tool is durable; after a kill, a call of it always \
             runs again from its last step"
        )
    })
}
