//! Text statistics, and full-text search over documents in the call.

use toolgate_sdk::prelude::*;

mod search;
mod stats;

toolgate_sdk::plugin! {
    Tool::server(
        "text_stats",
        "Counts the words, sentences, lines and characters of a text, and lists its most frequent words.",
        |args: stats::Text, _: &Call| Ok(stats::of(&args.text, args.top)),
    )
    .title("Statistics of a text")
    .read_only()
    .idempotent(),

    Tool::server(
        "text_search",
        "Ranks documents by how well they match a query (Okapi BM25) and shows where they do.",
        |args: search::Search, _: &Call| search::rank(&args),
    )
    .title("Search in documents")
    .read_only()
    .idempotent(),
}

/// The words of a text in lower case, with their byte ranges. A word consists of letters, digits and inner apostrophes.
fn words(text: &str) -> impl Iterator<Item = (usize, usize, String)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = at + text[at..].find(char::is_alphanumeric)?;
        let mut end = begin;
        let mut chars = text[begin..].char_indices().peekable();
        while let Some((offset, c)) = chars.next() {
            let inside = matches!(c, '\'' | '’') && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric());
            if !c.is_alphanumeric() && !inside {
                break;
            }
            end = begin + offset + c.len_utf8();
        }
        at = end;
        Some((begin, end, text[begin..end].to_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_sdk::testing::{check, run};

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).unwrap();
    }

    #[test]
    fn words_keep_their_apostrophes_and_nothing_else() {
        let found: Vec<_> = words("Don't — stop, “Émile's” 'quoted' x2!").map(|(_, _, word)| word).collect();
        assert_eq!(found, ["don't", "stop", "émile's", "quoted", "x2"]);
    }

    #[test]
    fn statistics_of_a_small_text() {
        let run = run(tools(), "text_stats", json!({"text": "To be. Or not to be?\nThat is it…", "top": 2}));
        let stats = run.result.unwrap();
        assert_eq!(stats["words"], 9);
        assert_eq!(stats["unique_words"], 7);
        assert_eq!(stats["sentences"], 3);
        assert_eq!(stats["lines"], 2);
        assert_eq!(stats["top_words"], json!([{"word": "be", "count": 2}, {"word": "to", "count": 2}]));
    }

    #[test]
    fn the_document_with_the_rarer_word_ranks_first() {
        let documents = json!([
            {"id": "a", "text": "The whale is large. The sea is large."},
            {"id": "b", "text": "A harpoon hit the whale, and the sea turned red."},
            {"id": "c", "text": "Nothing about it here."},
        ]);
        let run = run(tools(), "text_search", json!({"query": "whale harpoon", "documents": documents}));
        let result = run.result.unwrap();
        let ids: Vec<_> = result["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["b", "a"]);
        assert_eq!(result["hits"][0]["snippet"], "A «harpoon» hit the «whale», and the sea turned red.");
    }

    #[test]
    fn a_query_without_words_is_refused() {
        let run = run(tools(), "text_search", json!({"query": "?!", "documents": []}));
        assert!(matches!(run.result, Err(Failure::InvalidArguments(_))));
    }
}
