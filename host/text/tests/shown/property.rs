//! What holds for every text, however it was put together.

use proptest::prelude::*;

/// Characters that a text may be put together of: everything, and often what is dangerous.
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

/// What is never shown as it is, whatever is around it. Written apart from the code that is tested.
fn is_dangerous(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{1680}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fe00}'..='\u{fe0d}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_dangerous_comes_out(text in text()) {
        for shown in [text::line(&text), text::excerpt(&text, 20), text::quoted(&text, 20).into(), text::json_line(&text).into()] {
            prop_assert!(!shown.contains(is_dangerous), "{shown:?}");
        }
        prop_assert!(!text::block(&text, "| ").contains(|c| is_dangerous(c) && c != '\n'));
        prop_assert!(text::block(&text, "| ").split_terminator('\n').all(|line| line.starts_with("| ")));
    }

    #[test]
    fn what_is_seen_stays_and_what_is_not_can_be_read(text in text()) {
        // Taking the escapes back gives the text, where the text held none that look like them.
        prop_assume!(!text.contains('\\'));
        prop_assert_eq!(unescaped(&text::line(&text)), text);
    }

    #[test]
    fn escaped_json_is_the_same_value(texts in proptest::collection::vec(text(), 1..4)) {
        let value = serde_json::json!({ texts[0].clone(): texts, "n": [1, null] });
        for written in [value.to_string(), serde_json::to_string_pretty(&value).unwrap_or_default()] {
            for shown in [text::json(&written), text::json_line(&written)] {
                prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&shown).unwrap_or_default(), &value, "{}", shown);
            }
        }
    }

    #[test]
    fn a_quotation_cannot_be_closed_from_within(text in text()) {
        let quoted = text::quoted(&text, 1_000);
        let inner = &quoted[1..quoted.len() - 1];
        prop_assert!(!inner.replace("\\\\", "").replace("\\\"", "").contains('"'), "{}", quoted);
    }
}

fn unescaped(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (kind, after) = rest[at + 1..].split_at(1);
        rest = after;
        match kind {
            "n" => text.push('\n'),
            "r" => text.push('\r'),
            "t" => text.push('\t'),
            _ => {
                let (code, after) = rest[1..].split_once('}').unwrap_or_default();
                text.extend(u32::from_str_radix(code, 16).ok().and_then(char::from_u32));
                rest = after;
            }
        }
    }
    text + rest
}
