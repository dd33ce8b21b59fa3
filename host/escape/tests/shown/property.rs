//! Properties of the escaper for random texts.

use proptest::prelude::*;

use crate::holds;

/// Random characters, with many dangerous ones.
fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        4 => any::<char>(),
        4 => proptest::char::range(' ', '~'),
        2 => proptest::char::range('\u{0}', '\u{ff}'),
        2 => proptest::char::range('\u{300}', '\u{36f}'),
        2 => proptest::char::range('\u{370}', '\u{52f}'),
        2 => proptest::char::range('\u{2000}', '\u{20ff}'),
        1 => proptest::char::range('\u{fe00}', '\u{ffff}'),
        1 => proptest::char::range('\u{e0000}', '\u{e01ff}'),
        1 => proptest::sample::select(vec!['"', '\\', '\n', '\r', '\t', 'а', 'е', 'о', 'ο', 'ｅ', '👩', 'क', '\u{94d}', 'ی']),
    ]
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(character(), 0..40).prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_text_is_shown_complete_and_harmless(text in text()) {
        holds::any_text(&text);
    }

    #[test]
    fn escaped_json_is_the_same_value(texts in proptest::collection::vec(text(), 1..4)) {
        let value = serde_json::json!({ texts[0].clone(): texts, "n": [1, null] });
        for written in [value.to_string(), serde_json::to_string_pretty(&value).unwrap_or_default()] {
            for shown in [escape::json(&written), escape::json_line(&written)] {
                prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&shown).unwrap_or_default(), &value, "{}", shown);
            }
        }
    }

    #[test]
    fn a_quotation_cannot_be_closed_from_within(text in text()) {
        let quoted = escape::quoted(&text, 1_000);
        let inner = &quoted[1..quoted.len() - 1];
        prop_assert!(!inner.replace("\\\\", "").replace("\\\"", "").contains('"'), "{}", quoted);
    }
}
