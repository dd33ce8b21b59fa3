//! Standard output and standard error: the only file that writes to them. Colours are for terminals, and for those who did
//! not ask for none. What is printed here was escaped by whoever made it.

use std::io::{self, IsTerminal as _, Write as _};

/// What a word is printed in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ink {
    /// What matters.
    Strong,
    /// What can be passed over.
    Faint,
    /// It went well.
    Good,
    /// It waits.
    Open,
    /// It did not go well.
    Bad,
}

impl Ink {
    const fn code(self) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Open => "33",
            Self::Bad => "31",
        }
    }
}

/// Where the binary speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    out: bool,
    err: bool,
}

impl Terminal {
    /// Looks whether anybody sees colours.
    pub(crate) fn new() -> Self {
        let wanted = !toolgate::config::no_color();
        Self { out: wanted && io::stdout().is_terminal(), err: wanted && io::stderr().is_terminal() }
    }

    /// A terminal without colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { out: false, err: false }
    }

    /// Words for standard output in a colour.
    pub(crate) fn ink(&self, ink: Ink, words: &str) -> String {
        paint(self.out, ink, words)
    }

    /// Words for standard error in a colour.
    pub(crate) fn note_ink(&self, ink: Ink, words: &str) -> String {
        paint(self.err, ink, words)
    }

    /// Whether standard error shows colours.
    pub(crate) fn colours_notes(self) -> bool {
        self.err
    }

    /// Prints a line to standard output.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_ref().as_bytes())?;
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Standard output itself, for what is long.
    pub(crate) fn raw(&self) -> impl io::Write {
        io::BufWriter::new(io::stdout().lock())
    }

    /// Prints to standard error as it is. If nobody can read it, there is nobody to tell.
    pub(crate) fn note(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

fn paint(wanted: bool, ink: Ink, words: &str) -> String {
    if wanted { format!("\u{1b}[{}m{words}\u{1b}[0m", ink.code()) } else { words.to_owned() }
}
