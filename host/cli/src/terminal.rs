//! Standard output and standard error: the only file that writes to them. Callers escape untrusted text before they print it.

use std::io::{self, IsTerminal as _, Write as _};

/// The style of a word.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Strong,
    Faint,
    Good,
    Open,
    Bad,
}

/// Standard output and standard error, and whether each shows colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    out: bool,
    err: bool,
}

impl Terminal {
    /// Uses colours on a terminal, unless `NO_COLOR` is set.
    pub(crate) fn new() -> Self {
        let colours = !toolgate::config::no_color();
        Self { out: colours && io::stdout().is_terminal(), err: colours && io::stderr().is_terminal() }
    }

    /// A terminal without colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { out: false, err: false }
    }

    /// Styled words for standard output.
    pub(crate) fn style(&self, style: Style, words: &str) -> String {
        styled(self.out, style, words)
    }

    /// Styled words for standard error.
    pub(crate) fn note_style(&self, style: Style, words: &str) -> String {
        styled(self.err, style, words)
    }

    /// Whether standard error shows colours.
    pub(crate) fn note_has_colours(self) -> bool {
        self.err
    }

    /// Prints a line to standard output.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_ref().as_bytes())?;
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Standard output itself, for long output.
    pub(crate) fn raw(&self) -> impl io::Write {
        io::BufWriter::new(io::stdout().lock())
    }

    /// Prints to standard error. A failure to do so is ignored: nothing is left to report it to.
    pub(crate) fn note(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Prints a warning to standard error.
    pub(crate) fn warning(&self, text: &str) {
        self.note(&format!("{} {text}\n", self.note_style(Style::Bad, "warning:")));
    }
}

fn styled(colours: bool, style: Style, words: &str) -> String {
    let code = match style {
        _ if !colours => return words.to_owned(),
        Style::Strong => 1,
        Style::Faint => 2,
        Style::Good => 32,
        Style::Open => 33,
        Style::Bad => 31,
    };
    format!("\u{1b}[{code}m{words}\u{1b}[0m")
}
