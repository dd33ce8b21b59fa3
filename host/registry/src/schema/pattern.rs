//! What matching a pattern costs, judged from its text.
//!
//! A pattern without lookaround and backreferences is matched in one pass over a text. Each byte takes as long as there are
//! states that the pattern can be in at once, and those are at most what the pattern has when its repetitions are written
//! out. Any other is matched by trying, up to a limit of steps; what it looks ahead to may be read again at every byte.

use super::MAX_BACKTRACKING;
use super::cost::Rates;

/// One match in any text.
const MATCH: u64 = 100;

/// One state at one byte.
const STATE: u64 = 2;

/// One step of trying.
const ATTEMPT: u64 = 50;

/// What a match costs.
pub(super) fn rates(pattern: &str) -> Rates {
    let Shape { states, tries } = Shape::of(pattern);
    let per_byte = states.saturating_mul(STATE);
    if tries {
        Rates([0, MATCH + ATTEMPT * MAX_BACKTRACKING as u64, per_byte, 1 + states / 8])
    } else {
        Rates([0, MATCH, per_byte, 0])
    }
}

/// What can be seen of a pattern without compiling it.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    /// States, with all repetitions written out; at most twice as many as there are.
    states: u64,
    /// Whether it is matched by trying.
    tries: bool,
}

impl Shape {
    fn of(pattern: &str) -> Self {
        let mut characters = pattern.chars().peekable();
        let mut tries = false;
        // For each group that is open, what it has so far; and the last thing in it, which a repetition multiplies.
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
                    // A `]` that comes first stands for itself or ends an empty class, which only makes the guess larger.
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
