//! The host's JSON parser accepts what `serde_json` accepts, apart from duplicate keys and large stored numbers, and reads the
//! same values.

use proptest::prelude::*;
use toolgate_domain::json::Json;

/// `serde_json` keeps the last of two equal keys, so a duplicate is recognised by what is lost.
fn has_duplicates(text: &str) -> bool {
    let colons = |text: &str| text.matches(':').count();
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| colons(&value.to_string()) < colons(text))
}

fn agrees(text: &str) {
    let theirs = serde_json::from_str::<serde_json::Value>(text);
    match (Json::unchecked(text).value(), theirs) {
        (Ok(ours), Ok(theirs)) => {
            let again = serde_json::from_str::<serde_json::Value>(&ours.to_json());
            assert_eq!(again.ok(), Some(theirs), "{text}");
        }
        (Err(_), Ok(_)) => assert!(has_duplicates(text), "{text}"),
        (Err(_), Err(_)) => {}
        // A stored number may have any size. One from outside may not.
        (Ok(_), Err(error)) => {
            let is_too_large = error.to_string().starts_with("number out of range");
            assert!(is_too_large && Json::parse(text).is_err(), "{text}: {error}");
        }
    }
}

#[test]
fn parsers_agree_on_chosen_texts() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let chosen = [
        "1 2",
        "NaN",
        "-",
        "-0",
        "0.10",
        "1.",
        ".5",
        "+1",
        "1e5",
        "1E+5",
        "1e",
        "1e999",
        "-1e999",
        "1e-999",
        "0e999",
        "-01",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "\u{feff}1",
        "\u{b}1",
        r#"{"a":"[[[\"[[["}"#,
        r#"{"a":1,}"#,
        "{,}",
        "[,]",
        r#"{"a":1,"\u0061":2}"#,
        r#"{"a":{"b":1,"b":1}}"#,
        r#"{"a"}"#,
        r#""\ud83d\ude00""#,
        r#""\ud83d""#,
        r#""\ude00""#,
        r#""\ud83d\u0061""#,
        r#""\u00zz""#,
        r#""\u12""#,
        r#""\uD83D\uDE00""#,
        r#""\/\b\f\n\r\t""#,
        r#""\x""#,
        "\"\u{1}\"",
        "\"\u{7f}\"",
        "\"\u{2028}\"",
        "tru",
        "truee",
        "nulll",
        "[true false]",
        "[1}",
    ];
    for text in chosen {
        agrees(text);
    }
    for text in [nested(127), nested(128), "9".repeat(308), "9".repeat(310), format!("0.{}", "1".repeat(400))] {
        agrees(&text);
    }
}

#[test]
fn parsers_agree_on_texts_with_one_error() {
    let whole = r#"{"a":[1,-2.5e+3,"x\u00fc\n\"",true,{"b":null,"ü":[[],{}]}],"c":{"d":"\ud83d\ude00"}, "e" : 0 }"#;
    for (at, found) in whole.char_indices() {
        let (before, after) = (&whole[..at], &whole[at + found.len_utf8()..]);
        agrees(before);
        for other in ["", "\"", "\\", "{", "}", "[", "]", ",", "0", "-", ".", "e", " ", "\n", "u", "d", "ü"] {
            agrees(&format!("{before}{other}{after}"));
        }
    }
}

proptest! {
    #[test]
    fn parsers_agree_on_random_texts(text in r#"([\[\]{}",:0-9eE.+\-\\unltrfa\n ]|"a":|true|null|\\u00e4){0,24}"#) {
        agrees(&text);
    }
}
