//! Estimates the cost of matching a regular expression, from the text of the pattern.
//!
//! The engine matches a pattern without lookaround and backreferences in one pass over a string. The time for each byte
//! grows with the number of states that can be active at once. This is at most the number of states of the pattern with
//! its repetitions expanded.
//!
//! The engine matches any other pattern by backtracking, up to a limit of steps. A lookahead may read the rest of the
//! string again at every byte.

use super::MAX_BACKTRACKING;
use super::cost::Rates;

/// The cost of one match, for a string of any length.
const MATCH: u64 = 100;

/// The cost of one state for one byte.
const STATE: u64 = 2;

/// The cost of one backtracking step.
const ATTEMPT: u64 = 50;

/// Returns the cost of matching a pattern.
pub(super) fn rates(pattern: &str) -> Rates {
    let Shape { states, tries } = Shape::of(pattern);
    let per_byte = states.saturating_mul(STATE);
    if tries {
        Rates([0, MATCH + ATTEMPT * MAX_BACKTRACKING as u64, per_byte, 1 + states / 8])
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
}

impl Shape {
    fn of(pattern: &str) -> Self {
        let mut characters = pattern.chars().peekable();
        let mut tries = false;
        // For each enclosing group: the states before its last item, and the states of its last item. A repetition
        // multiplies the states of the last item.
        let mut open: Vec<(u64, u64)> = Vec::new();
        let (mut all, mut last) = (0_u64, 0_u64);
        while let Some(c) = characters.next() {
            let mut repeated = 0;
            match c {
                '(' => {
                    if characters.next_if_eq(&'?').is_some() {
                        tries |= characters.next_if_eq(&':').is_none();
                    }
                    open.push((all, last));
                    (all, last) = (0, 0);
                    continue;
                }
                ')' => {
                    let group = all.saturating_add(last).saturating_add(1);
                    (all, last) = open.pop().unwrap_or_default();
                    (all, last) = (all.saturating_add(last), group);
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
                '\\' => tries |= characters.next().is_some_and(|c| c.is_ascii_digit() || matches!(c, 'k' | 'K' | 'G')),
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
                last = last.saturating_mul(repeated);
                // A second `+` makes a repetition possessive.
                tries |= characters.next_if_eq(&'+').is_some();
                characters.next_if_eq(&'?');
            } else {
                (all, last) = (all.saturating_add(last), 1);
            }
        }
        let open: u64 = open.iter().map(|(all, last)| all.saturating_add(*last)).fold(0, u64::saturating_add);
        Self { states: open.saturating_add(all).saturating_add(last).max(1), tries }
    }
}

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn repetitions_are_written_out_and_what_looks_around_is_tried() {
        for (pattern, states, tries) in [
            ("", 1, false),
            ("abc", 3, false),
            (r"^\d{4}-\d{2}-[0-9\]]{2}$", 12, false),
            ("(?:a{10}){20,}b*?", 221, false),
            ("((a{1,1000}){1,1000}){1,1000}", 1_001_001_000, false),
            ("(?=a)b", 4, true),
            (r"(a)\1", 3, true),
            ("a++", 1, true),
            ("[*+]+", 1, false),
        ] {
            assert_eq!(Shape::of(pattern), Shape { states, tries }, "{pattern}");
        }
    }
}
