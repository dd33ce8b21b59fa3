//! Full-text search with Okapi BM25 (Robertson and Zaragoza, 2009) over documents in the call. There is no index, so a
//! search takes time in proportion to their length.

use std::collections::BTreeMap;

use toolgate_sdk::prelude::*;

use crate::words;

/// The saturation of word frequencies and the weight of document lengths: the usual constants.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The bytes of text in a snippet on either side of its first match.
const AROUND: usize = 80;

/// What to search, and where.
#[derive(Deserialize, JsonSchema)]
pub struct Search {
    /// Words; a document need not have all of them.
    query: String,
    /// Where to search.
    #[schemars(length(max = 10_000))]
    documents: Vec<Document>,
    /// How many documents to give back at most.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
}

fn ten() -> usize {
    10
}

/// One document.
#[derive(Deserialize, JsonSchema)]
pub struct Document {
    /// However the caller knows it.
    id: String,
    /// Its text.
    text: String,
}

/// The documents that match.
#[derive(Serialize, JsonSchema)]
pub struct Hits {
    /// How many documents match at all.
    matching: usize,
    /// The best of them, the best first.
    hits: Vec<Hit>,
}

/// One document that matches.
#[derive(Serialize, JsonSchema)]
pub struct Hit {
    id: String,
    /// Comparable within one search only.
    score: f64,
    /// The text around the first match, with the words of the query in «».
    snippet: String,
}

/// A document with its word counts.
struct Counted<'a> {
    document: &'a Document,
    length: f64,
    /// The frequency of each word of the query.
    frequencies: BTreeMap<String, f64>,
}

/// Ranks the documents.
pub fn rank(search: &Search) -> Result<Hits, Failure> {
    let query: Vec<String> = words(&search.query).map(|(_, _, word)| word).collect();
    if query.is_empty() {
        return Err(Failure::invalid_arguments("`query` has no word in it"));
    }
    let counted: Vec<_> = search.documents.iter().map(|document| count(document, &query)).collect();
    let total = counted.len() as f64;
    let average = (counted.iter().map(|document| document.length).sum::<f64>() / total).max(1.0);
    let rarity: BTreeMap<&str, f64> = query
        .iter()
        .map(|word| {
            let with = counted.iter().filter(|document| document.frequencies.contains_key(word)).count() as f64;
            (word.as_str(), (1.0 + (total - with + 0.5) / (with + 0.5)).ln())
        })
        .collect();
    let score = |document: &Counted| -> f64 {
        let norm = K1 * (1.0 - B + B * document.length / average);
        document.frequencies.iter().map(|(word, n)| rarity[word.as_str()] * n * (K1 + 1.0) / (n + norm)).sum()
    };
    let mut scored: Vec<_> =
        counted.iter().filter(|d| !d.frequencies.is_empty()).map(|d| (score(d), d.document)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.id.cmp(&b.1.id)));
    let hits = scored.iter().take(search.limit).map(|(score, document)| Hit {
        id: document.id.clone(),
        score: (score * 10_000.0).round() / 10_000.0,
        snippet: snippet(&document.text, &query),
    });
    Ok(Hits { matching: scored.len(), hits: hits.collect() })
}

fn count<'a>(document: &'a Document, query: &[String]) -> Counted<'a> {
    let mut counted = Counted { document, length: 0.0, frequencies: BTreeMap::new() };
    for (_, _, word) in words(&document.text) {
        counted.length += 1.0;
        if query.contains(&word) {
            *counted.frequencies.entry(word).or_default() += 1.0;
        }
    }
    counted
}

/// The text around the first match, cut between words, with every match marked.
fn snippet(text: &str, query: &[String]) -> String {
    let all: Vec<_> = words(text).collect();
    let Some((first, _, _)) = all.iter().find(|(_, _, word)| query.contains(word)) else {
        return String::new();
    };
    let (from, to) = (first.saturating_sub(AROUND), first + AROUND);
    let shown: Vec<_> = all.iter().filter(|(begin, end, _)| *begin >= from && *end <= to).collect();
    let (Some((begin, ..)), Some((_, end, _))) = (shown.first(), shown.last()) else {
        return String::new();
    };
    let (cut_before, cut_after) = (all[0].0 < *begin, all[all.len() - 1].1 > *end);
    let mut out = if cut_before { "… ".to_owned() } else { String::new() };
    let mut at = *begin;
    for (begin, end, word) in shown {
        out.push_str(&text[at..*begin]);
        let matched = query.contains(word);
        out.push_str(if matched { "«" } else { "" });
        out.push_str(&text[*begin..*end]);
        out.push_str(if matched { "»" } else { "" });
        at = *end;
    }
    out.push_str(if cut_after { " …" } else { text[at..].trim_end() });
    out
}
