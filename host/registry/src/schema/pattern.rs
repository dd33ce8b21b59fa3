//! The keyword `pattern`, and the cost of matching a regular expression.
//!
//! The engine matches a pattern without lookaround and backreferences in one pass over a string. The time for each byte
//! grows with the number of states that can be active at once. This is at most the number of states of the pattern with
//! its repetitions expanded.
//!
//! The engine matches any other pattern by backtracking. Almost all matches take few steps, and a few patterns take very
//! many on some strings. So such a match starts with a low limit of steps, which is raised while it is not enough. The
//! engine does not tell the steps that it took, so each attempt is charged with its limit to the [`Work`] of the
//! validation. A step may run over the whole string, and so may each repetition of a group that looks around.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use fancy_regex::{Regex, RegexBuilder};
use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

use super::rates::Rates;

/// The limits of backtracking steps for one match of the keyword `pattern`. Each is tried if the one before was not
/// enough.
const STEPS: &[usize] = &[3, 200, 5_000, 100_000];

/// The limit for names of members. The library matches them, several times if schemas overlap. It validates a value
/// again and again if one of these matches does not finish, so that is found out before.
pub(super) const NAME_STEPS: usize = 500;

/// The largest size of a compiled pattern. Plugins write the patterns, so the host must bound their memory.
pub(super) const MAX_PATTERN: usize = 1 << 20;

/// The cost of one match, for a string of any length.
const MATCH: u64 = 100;

/// The cost of one state for one byte.
const STATE: u64 = 2;

/// The cost of one backtracking step, or of one look around.
const ATTEMPT: u64 = 50;

/// A match by backtracking has the costs of this many bytes more, so that an empty string has costs too.
const EMPTY: u64 = 8;

thread_local! {
    /// The work of the validation that runs on this thread.
    static WORK: Cell<Work> = const { Cell::new(Work { left: 0, is_incomplete: false }) };
}

/// The work that the patterns of one validation may still do.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// In units of cost.
    pub(super) left: u64,
    /// Whether a match did not finish. The result of the validation then means nothing.
    pub(super) is_incomplete: bool,
}

impl Work {
    /// Runs a validation whose patterns may do so much work. Returns the rest of it.
    pub(super) fn within<T>(max: u64, validate: impl FnOnce() -> T) -> (T, Self) {
        WORK.set(Self { left: max, is_incomplete: false });
        let result = validate();
        (result, WORK.get())
    }

    /// Charges some work. Returns whether it fits.
    pub(super) fn charge(cost: u64) -> bool {
        let Self { left, is_incomplete } = WORK.get();
        let rest = left.checked_sub(cost);
        WORK.set(Self { left: rest.unwrap_or(0), is_incomplete: is_incomplete || rest.is_none() });
        rest.is_some()
    }

    /// The work that is left to the validation that runs.
    pub(super) fn left_now() -> u64 {
        WORK.get().left
    }

    /// Whether the result of the validation already means nothing.
    pub(super) fn is_over() -> bool {
        WORK.get().is_incomplete
    }

    fn stop() {
        WORK.set(Self { is_incomplete: true, ..WORK.get() });
    }
}

/// A pattern, and its engines.
pub(super) struct Pattern {
    source: String,
    /// The pattern in the engine's syntax.
    translated: String,
    shape: Shape,
    /// The limits of steps, each with its engine. The first engine is always made.
    engines: Vec<(usize, OnceLock<Option<Regex>>)>,
}

impl Pattern {
    /// Makes the keyword `pattern` of a schema.
    ///
    /// # Errors
    /// If its value is not a pattern, or its engine would be too large.
    pub(super) fn keyword<'a>(
        _: &'a Map<String, Value>,
        value: &'a Value,
        _: Location,
    ) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
        let pattern = value.as_str().and_then(|source| Self::new(source, STEPS));
        let pattern = pattern.ok_or_else(|| ValidationError::schema(format!("{value} is not a \"regex\"")))?;
        Ok(Box::new(pattern))
    }

    /// A pattern of `patternProperties`.
    pub(super) fn of_names(source: &str) -> Option<Self> {
        Self::new(source, &[NAME_STEPS])
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    fn new(source: &str, limits: &[usize]) -> Option<Self> {
        let translated = jsonschema_regex::to_rust_regex(source).ok()?.into_owned();
        let engines = limits.iter().map(|limit| (*limit, OnceLock::new())).collect();
        let pattern = Self { source: source.to_owned(), translated, shape: Shape::of(source), engines };
        let is_usable = pattern.engines().next().is_some_and(|(_, engine)| engine.is_some());
        is_usable.then_some(pattern)
    }

    fn engines(&self) -> impl Iterator<Item = (usize, Option<&Regex>)> {
        let make = |limit| {
            let mut builder = RegexBuilder::new(&self.translated);
            builder.backtrack_limit(limit).delegate_size_limit(MAX_PATTERN).delegate_dfa_size_limit(MAX_PATTERN);
            builder.build().ok()
        };
        self.engines.iter().map(move |(limit, engine)| (*limit, engine.get_or_init(|| make(*limit)).as_ref()))
    }

    /// Whether a string matches. `None`: the match did not finish.
    pub(super) fn matches(&self, text: &str) -> Option<bool> {
        for (attempt, (steps, engine)) in self.engines().enumerate() {
            // The cost of the schema includes a match without steps. A second attempt shows that the engine takes steps.
            let tries = self.shape.tries || attempt > 0;
            if tries && !Work::charge(self.shape.cost(text.len() as u64, steps as u64)) {
                return None;
            }
            // The engine has panicked on some patterns.
            match engine.map(|engine| catch_unwind(AssertUnwindSafe(|| engine.is_match(text)))) {
                Some(Ok(Ok(matched))) => return Some(matched),
                Some(Ok(Err(_))) => {}
                Some(Err(_)) | None => break,
            }
        }
        Work::stop();
        None
    }
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        let Value::String(text) = value else { return Ok(()) };
        let source = &self.source;
        let shown = if text.len() <= MAX_SHOWN { Cow::Owned(value.to_string()) } else { Cow::Borrowed("value") };
        match self.matches(text) {
            Some(true) => Ok(()),
            Some(false) => Err(ValidationError::custom(format!("{shown} does not match \"{source}\""))),
            None => {
                let message = format!("it would take too long to find out whether {shown} matches \"{source}\"");
                Err(ValidationError::custom(message))
            }
        }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        value.as_str().is_none_or(|text| self.matches(text) == Some(true))
    }
}

/// Messages quote strings of at most this many bytes.
const MAX_SHOWN: usize = 200;

/// Returns the cost of the keyword, without the work that is charged to [`Work`].
pub(super) fn rates(pattern: &str) -> Rates {
    let Shape { states, tries, .. } = Shape::of(pattern);
    let per_byte = if tries { 0 } else { states.saturating_mul(STATE) };
    Rates([0, MATCH, per_byte, 0])
}

/// Returns the cost of matching a name of a member against a pattern.
pub(super) fn name_rates(pattern: &str) -> Rates {
    let Shape { states, tries, .. } = Shape::of(pattern);
    let per_byte = states.saturating_mul(STATE);
    if tries {
        Rates([0, MATCH + ATTEMPT * NAME_STEPS as u64, per_byte, 1 + states / 8])
    } else {
        Rates([0, MATCH, per_byte, 0])
    }
}

/// The properties of a pattern that are known without compiling it.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    /// The number of states with all repetitions expanded. The estimate is at most twice the real number.
    states: u64,
    /// Whether the engine matches it by backtracking.
    tries: bool,
    /// Whether a repetition has a part that needs backtracking. Such a part runs for each byte, and not only for each step.
    repeats: bool,
}

/// The part of a pattern between two parentheses.
#[derive(Clone, Copy, Default)]
struct Part {
    /// The states before its last item.
    before: u64,
    /// The states of its last item. A repetition multiplies them.
    last: u64,
    /// Whether it needs backtracking.
    tries: bool,
}

impl Part {
    fn states(self) -> u64 {
        self.before.saturating_add(self.last)
    }

    /// The part with another item behind its last one.
    fn and(self, states: u64, tries: bool) -> Self {
        Self { before: self.states(), last: states, tries: self.tries || tries }
    }
}

impl Shape {
    /// The cost of a match by backtracking that takes at most this number of steps.
    fn cost(&self, bytes: u64, steps: u64) -> u64 {
        let looks = if self.repeats || !self.tries { bytes } else { bytes.min(steps + 1) };
        let look = ATTEMPT.saturating_add(bytes.saturating_mul(1 + self.states / 8));
        let pass = self.states.saturating_mul(STATE).saturating_mul(bytes + EMPTY);
        let steps = steps.saturating_mul(ATTEMPT + bytes / 8);
        MATCH.saturating_add(pass).saturating_add(looks.saturating_mul(look)).saturating_add(steps)
    }

    fn of(pattern: &str) -> Self {
        let mut characters = pattern.chars().peekable();
        let (mut tries, mut repeats) = (false, false);
        // The enclosing groups, and whether the last item of this part needs backtracking.
        let (mut open, mut part, mut last_tries) = (Vec::<Part>::new(), Part::default(), false);
        while let Some(c) = characters.next() {
            let (mut repeated, mut item_tries) = (0, false);
            match c {
                '(' => {
                    open.push(part);
                    let looks = characters.next_if_eq(&'?').is_some() && characters.next_if_eq(&':').is_none();
                    tries |= looks;
                    part = Part { tries: looks, ..Part::default() };
                    continue;
                }
                ')' => {
                    let group = part;
                    part = open.pop().unwrap_or_default().and(group.states().saturating_add(1), group.tries);
                    last_tries = group.tries;
                    continue;
                }
                '*' | '+' | '?' => repeated = 1,
                '{' => {
                    let mut bounds = String::new();
                    while let Some(c) = characters.next_if(|c| c.is_ascii_digit() || *c == ',') {
                        bounds.push(c);
                    }
                    characters.next_if_eq(&'}');
                    repeated = bounds.split(',').filter_map(|n| n.parse().ok()).max().unwrap_or(1).max(1);
                }
                '\\' => {
                    item_tries = characters
                        .next()
                        .is_some_and(|c| c.is_ascii_digit() || matches!(c, 'k' | 'K' | 'G' | 'b' | 'B' | '<' | '>'));
                }
                '[' => {
                    // This loop ends the class at a leading `]`. If that `]` is a literal, the estimate is only larger.
                    while let Some(c) = characters.next() {
                        match c {
                            ']' => break,
                            '\\' => drop(characters.next()),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
            if repeated > 0 {
                part.last = part.last.saturating_mul(repeated);
                repeats |= last_tries && c != '?';
                // A second `+` makes a repetition possessive.
                item_tries = characters.next_if_eq(&'+').is_some();
                part.tries |= item_tries;
                characters.next_if_eq(&'?');
            } else {
                part = part.and(1, item_tries);
            }
            tries |= item_tries;
            last_tries = item_tries;
        }
        let open = open.into_iter().map(Part::states).fold(0, u64::saturating_add);
        Self { states: open.saturating_add(part.states()).max(1), tries, repeats }
    }
}

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn repetitions_are_written_out_and_what_looks_around_is_tried() {
        for (pattern, states, tries, repeats) in [
            ("", 1, false, false),
            ("abc", 3, false, false),
            (r"^\d{4}-\d{2}-[0-9\]]{2}$", 12, false, false),
            ("(?:a{10}){20,}b*?", 221, false, false),
            ("((a{1,1000}){1,1000}){1,1000}", 1_001_001_000, false, false),
            ("(?=a)b", 4, true, false),
            ("(?=a*)?b*", 4, true, false),
            (r"(a)\1", 3, true, false),
            (r"(a)\1+", 3, true, true),
            (r"\bab", 3, true, false),
            ("a++", 1, true, false),
            ("(?:ba++)*", 3, true, true),
            ("(?:(?=a)b)*", 5, true, true),
            ("(?:(?:(?=a)b)c){2}", 14, true, true),
            ("[*+]+", 1, false, false),
        ] {
            assert_eq!(Shape::of(pattern), Shape { states, tries, repeats }, "{pattern}");
        }
    }
}
