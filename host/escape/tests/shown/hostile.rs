//! Deceptive text, and how it is escaped.

use crate::Rows;

#[test]
fn only_deceptive_text_is_escaped() {
    let rows = Rows::read().hostile;
    let shown: Vec<_> = rows.values().flatten().map(|(text, expected)| (text, escape::line(text), expected)).collect();
    let wrong: Vec<_> = shown.iter().filter(|(_, shown, expected)| shown != *expected).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), shown.len());
    assert!(shown.len() >= 60);
}

#[test]
fn deceptive_text_is_escaped_in_json_too() {
    for (text, _) in Rows::read().hostile.values().flatten() {
        let written = serde_json::Value::from(vec![text.as_str(), "plain"]).to_string();
        let shown = escape::json(&written);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).ok(),
            serde_json::from_str(&written).ok(),
            "{shown}"
        );
        let escapes = escape::line(text).matches("\\u{").count();
        let in_json = shown.matches('\\').count();
        assert!(in_json >= escapes, "{shown} against {}", escape::line(text));
    }
}

#[test]
fn each_json_string_is_checked_on_its_own() {
    for (json, expected) in [
        (
            r#"{"to":"раураӏ","note":"Это для вас, а не для нас"}"#,
            r#"{"to":"\u0440\u0430\u0443\u0440\u0430\u04cf","note":"Это для вас, а не для нас"}"#,
        ),
        (r#"{"раураӏ":1}"#, r#"{"\u0440\u0430\u0443\u0440\u0430\u04cf":1}"#),
        (r#"["Привет\nМир","\"мир\"","\\сор"]"#, r#"["Привет\nМир","\"мир\"","\\\u0441\u043e\u0440"]"#),
        ("[\"\u{e0041}\u{9b}\"]", r#"["\udb40\udc41\u009b"]"#),
        ("not json \u{202e} \"open", r#"not json \u202e "open"#),
        ("{\n\t\"a\": \"\u{1b}\"}", "{\n\t\"a\": \"\\u001b\"}"),
        (r#"["\u"#, r#"["\u"#),
        (r#"["\u00é"]"#, r#"["\u00é"]"#),
    ] {
        assert_eq!(escape::json(json), expected);
        assert_eq!(escape::json_line(json), expected.replace(['\n', '\t'], " "));
    }
}

/// One word as long as arguments may be. Comparing each pair of its parts would take hours.
#[test]
fn long_word_with_many_parts_is_checked() {
    let parts = (1 << 20) / "а.".len();
    assert_eq!(escape::line(&"а.".repeat(parts)), r"\u{430}.".repeat(parts));
}

#[test]
fn every_line_of_a_block_is_indented_and_complete() {
    let long = "x".repeat(10_000);
    let several = format!("one\r\ntwo\rthree\n{long}");
    assert_eq!(escape::block(&several, "| "), format!("| one\n| two\\rthree\n| {long}\n"));
    assert_eq!(escape::lines("one\r\ntwo\rthree\n\u{1b}"), "one\ntwo\\rthree\n\\u{1b}");
    assert_eq!(escape::block("", "| "), "| \n");
    // A word is checked in the context of the whole text, not of its line.
    assert_eq!(escape::block("Это мир,\nа\nне сор", "| "), "| Это мир,\n| а\n| не сор\n");
}

#[test]
fn cut_text_shows_how_much_is_missing() {
    assert_eq!(escape::excerpt("as it\nis", 8), "as it\\nis");
    assert_eq!(escape::excerpt(&"ü".repeat(10), 4), "üüüü … and 12 bytes more");
    assert_eq!(escape::quoted("a\u{202e}\n", 80), r#""a\u{202e}\n""#);
    assert_eq!(escape::quoted(r#"" and \"#, 80), r#""\" and \\""#);
    assert_eq!(escape::quoted(&"ü".repeat(100), 80), format!("\"{}\" and 40 bytes more", "ü".repeat(80)));
}
