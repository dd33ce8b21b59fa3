//! The values in grants of requests: URLs and methods.

use std::collections::BTreeSet;

use domain::Span;
use serde::{Deserialize, Serialize};

use super::rule::NEVER;
use super::{HttpRule, Reach};
use crate::words::{InvalidWord, is_plain, shown, written};

/// Seven days.
const MAX_WAIT_SECONDS: u64 = 7 * 86_400;

/// Where requests may go: scheme, host, port and path prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    text: String,
    rule: HttpRule,
}

/// An HTTP method.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Method(String);

/// The longest time of waits for a server, from a second to seven days: `90s`, `15m`, `2h`, `7d`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MaxWait {
    text: String,
    span: Span,
}

impl TryFrom<String> for MaxWait {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let seconds = ["s", "m", "h", "d"].into_iter().zip([1_u64, 60, 3_600, 86_400]).find_map(|(unit, seconds)| {
            let number = text.strip_suffix(unit).filter(|number| number.bytes().all(|b| b.is_ascii_digit()))?;
            number.parse::<u64>().ok()?.checked_mul(seconds)
        });
        match seconds.filter(|seconds| (1..=MAX_WAIT_SECONDS).contains(seconds)) {
            Some(seconds) => Ok(Self { text, span: Span::from_secs(seconds) }),
            None => Err(InvalidWord(format!("{text:?} is no time from 1s to 7d: expected `90s`, `15m`, `2h` or `7d`"))),
        }
    }
}

impl MaxWait {
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }
}

impl TryFrom<String> for Target {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let invalid = |why: &str| InvalidWord(format!("{text:?} is not a rule for requests: {why}"));
        if !is_plain(&text, 2048) || text.contains('\\') || text.replacen("://*.", "", 1).contains('*') {
            return Err(invalid("expected a URL such as `https://api.example.com/v1/`"));
        }
        // The URL parser would remove such steps and so change the meaning of the text.
        let path = text.split_once("://").map_or("", |(_, rest)| rest).to_ascii_lowercase().replace("%2e", ".");
        if path.split('/').skip(1).any(|step| matches!(step, "." | "..")) {
            return Err(invalid("its path has a step `.` or `..`"));
        }
        let rule = HttpRule::parse(&text, BTreeSet::new(), Reach::Public)?;
        Ok(Self { text, rule })
    }
}

impl TryFrom<String> for Method {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let allowed = (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
        if NEVER.contains(&text.as_str()) {
            return Err(InvalidWord(format!("the method {text} is granted to no plugin")));
        }
        if !allowed {
            return Err(InvalidWord(format!("{text:?} is not a method: expected upper-case letters, as in `POST`")));
        }
        Ok(Self(text))
    }
}

impl Target {
    /// The rule that allows these methods. Without any, it allows GET and HEAD.
    #[must_use]
    pub fn rule(&self, methods: &BTreeSet<Method>, reach: Reach) -> HttpRule {
        let reading = || ["GET", "HEAD"].map(str::to_owned).into();
        let methods = if methods.is_empty() { reading() } else { methods.iter().map(ToString::to_string).collect() };
        HttpRule { methods, reach, ..self.rule.clone() }
    }
}

shown! {
    Target: |word| &word.text,
    Method: |word| &word.0,
    MaxWait: |word| &word.text,
}

written!(Target, Method, MaxWait);
