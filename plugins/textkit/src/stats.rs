//! Counts the parts of a text.

use std::collections::BTreeMap;

use toolgate_sdk::prelude::*;

use crate::words;

/// Words that a person reads in a minute, by studies of silent reading of English.
const READING_SPEED: f64 = 238.0;

/// A text to count.
#[derive(Deserialize, JsonSchema)]
pub struct Text {
    /// The text.
    pub text: String,
    /// How many of the most frequent words to list.
    #[serde(default = "ten")]
    #[schemars(range(max = 100))]
    pub top: usize,
}

fn ten() -> usize {
    10
}

/// The counts.
#[derive(Serialize, JsonSchema)]
pub struct Stats {
    words: usize,
    unique_words: usize,
    sentences: usize,
    lines: usize,
    /// Unicode characters, white space included.
    characters: usize,
    /// 0 for a text without sentences.
    words_per_sentence: f64,
    /// At 238 words a minute.
    reading_minutes: f64,
    /// The most frequent first; among equals, in the order of the alphabet.
    top_words: Vec<Frequency>,
}

/// How often a word occurs.
#[derive(Serialize, JsonSchema)]
pub struct Frequency {
    word: String,
    count: usize,
}

/// Counts a text.
pub fn of(text: &str, top: usize) -> Stats {
    let mut counts = BTreeMap::<String, usize>::new();
    for (_, _, word) in words(text) {
        *counts.entry(word).or_default() += 1;
    }
    let total: usize = counts.values().sum();
    let unique_words = counts.len();
    let sentences = sentences(text);
    let mut top_words: Vec<_> = counts.into_iter().map(|(word, count)| Frequency { word, count }).collect();
    top_words.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.word.cmp(&b.word)));
    top_words.truncate(top);
    Stats {
        words: total,
        unique_words,
        sentences,
        lines: text.lines().count(),
        characters: text.chars().count(),
        words_per_sentence: if sentences == 0 { 0.0 } else { rounded(total as f64 / sentences as f64) },
        reading_minutes: rounded(total as f64 / READING_SPEED),
        top_words,
    }
}

/// Sentences: parts with a word between runs of `.`, `!`, `?` and `…`. An abbreviation also ends one, because telling
/// it apart would need to know the language.
fn sentences(text: &str) -> usize {
    text.split(['.', '!', '?', '…']).filter(|part| part.chars().any(char::is_alphanumeric)).count()
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
