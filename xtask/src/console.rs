//! The only file that prints. Only terminals get colours, unless `NO_COLOR` is set.

#![expect(clippy::disallowed_macros, reason = "this file owns the output of xtask")]

use std::io::IsTerminal as _;
use std::sync::LazyLock;
use std::time::Duration;

#[expect(clippy::disallowed_methods, reason = "this file owns the output of xtask, so it decides about colours")]
static COLOURS: LazyLock<bool> =
    LazyLock::new(|| std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none());

/// The style of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tone {
    Bold,
    Dim,
    Good,
    Bad,
    Waiting,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Waiting => "33",
        }
    }
}

/// The text in a style, if colours are on.
pub(crate) fn toned(tone: Tone, text: &str) -> String {
    if *COLOURS { format!("\x1b[{}m{text}\x1b[0m", tone.code()) } else { text.to_owned() }
}

pub(crate) fn line(text: &str) {
    println!("{text}");
}

pub(crate) fn headline(text: &str) {
    println!("\n{}", toned(Tone::Bold, &format!("== {text}")));
}

pub(crate) fn aside(text: &str) {
    println!("{}", toned(Tone::Dim, text));
}

pub(crate) fn failure(text: &str) {
    eprintln!("{}: {text}", toned(Tone::Bad, "error"));
}

/// A duration as people write it.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        let whole = duration.as_secs();
        format!("{} min {:02} s", whole / 60, whole % 60)
    }
}
