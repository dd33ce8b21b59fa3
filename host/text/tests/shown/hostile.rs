//! Text that deceives, and how it is written out.

/// What comes in, and what people see.
const ROWS: &[(&str, &str)] = &[
    // Controls: cursor, colour, title, links, forged lines.
    ("\u{1b}[2K\u{1b}[1Aapproved", r"\u{1b}[2K\u{1b}[1Aapproved"),
    ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
    ("\u{1b}]8;;https://evil\u{1b}\\click", r"\u{1b}]8;;https://evil\u{1b}\click"),
    ("\u{9b}31m", r"\u{9b}31m"),
    ("two\nlines\r\n", r"two\nlines\r\n"),
    ("a\tb", r"a\tb"),
    ("100%\u{8}\u{8}\u{8}1%", r"100%\u{8}\u{8}\u{8}1%"),
    ("nul\u{0}", r"nul\u{0}"),
    ("del\u{7f}", r"del\u{7f}"),
    ("next\u{85}line", r"next\u{85}line"),
    ("sep\u{2028}a\u{2029}b", r"sep\u{2028}a\u{2029}b"),
    // Directions.
    ("pay\u{202e}001", r"pay\u{202e}001"),
    ("a\u{2066}b\u{2069}", r"a\u{2066}b\u{2069}"),
    ("\u{202a}x\u{202c}", r"\u{202a}x\u{202c}"),
    ("left\u{200e}right\u{200f}arabic\u{61c}", r"left\u{200e}right\u{200f}arabic\u{61c}"),
    // Nothing to be seen.
    ("no\u{200b}width", r"no\u{200b}width"),
    ("soft\u{ad}hyphen", r"soft\u{ad}hyphen"),
    ("word\u{2060}joiner\u{feff}", r"word\u{2060}joiner\u{feff}"),
    ("math\u{2061}\u{2062}\u{2063}\u{2064}", r"math\u{2061}\u{2062}\u{2063}\u{2064}"),
    ("hidden\u{e0041}\u{e0042}tag", r"hidden\u{e0041}\u{e0042}tag"),
    ("selector\u{fe00}", r"selector\u{fe00}"),
    ("smuggled 😀\u{e0100}\u{e0101}", r"smuggled 😀\u{e0100}\u{e0101}"),
    ("two 😀\u{fe0f}\u{fe0f}", r"two 😀️\u{fe0f}"),
    ("plain a\u{fe0f}", r"plain a\u{fe0f}"),
    ("joiner a\u{200d}b", r"joiner a\u{200d}b"),
    ("separator a\u{200c}b", r"separator a\u{200c}b"),
    ("filler\u{3164}\u{115f}\u{1160}\u{ffa0}", r"filler\u{3164}\u{115f}\u{1160}\u{ffa0}"),
    ("blank\u{2800}braille", r"blank\u{2800}braille"),
    ("khmer\u{17b4}\u{17b5}", r"khmer\u{17b4}\u{17b5}"),
    ("annotation\u{fff9}a\u{fffb}", r"annotation\u{fff9}a\u{fffb}"),
    ("private \u{e000}", r"private \u{e000}"),
    ("nobody's \u{378} \u{fffff}", r"nobody's \u{378} \u{fffff}"),
    // Spaces.
    ("rm\u{a0}-rf", r"rm\u{a0}-rf"),
    ("em\u{2003}space\u{2009}thin\u{205f}", r"em\u{2003}space\u{2009}thin\u{205f}"),
    ("ogham\u{1680}space", r"ogham\u{1680}space"),
    ("wide\u{3000}space", r"wide\u{3000}space"),
    // Scripts mixed within a word.
    ("pаypаl.com", r"p\u{430}yp\u{430}l.com"),
    ("gооgle", r"g\u{43e}\u{43e}gle"),
    ("Αpple", r"\u{391}pple"),
    ("miсrοsoft", r"mi\u{441}r\u{3bf}soft"),
    ("аpt-get install", r"\u{430}pt-get install"),
    ("rооt@host", r"r\u{43e}\u{43e}t@host"),
    ("user_nаme", r"user_n\u{430}me"),
    ("ρау", r"\u{3c1}\u{430}\u{443}"),
    ("Ꭺdmin", r"\u{13aa}dmin"),
    ("ԁelete", r"\u{501}elete"),
    ("paypaӏ", r"paypa\u{4cf}"),
    ("оплaта", r"\u{43e}плaт\u{430}"),
    ("Ѕtate οf the аrt", r"\u{405}tate \u{3bf}f the \u{430}rt"),
    // Whole words of letters that look like others.
    ("send it to раураӏ now", r"send it to \u{440}\u{430}\u{443}\u{440}\u{430}\u{4cf} now"),
    ("раураӏ.com", r"\u{440}\u{430}\u{443}\u{440}\u{430}\u{4cf}.com"),
    ("https://асе.example/х", r"https://\u{430}\u{441}\u{435}.example/\u{445}"),
    ("ѕсоре", r"\u{455}\u{441}\u{43e}\u{440}\u{435}"),
    ("key: кеу", r"key: \u{43a}\u{435}\u{443}"),
    ("сору1", r"\u{441}\u{43e}\u{440}\u{443}1"),
    ("use ΑΒΕ here", r"use \u{391}\u{392}\u{395} here"),
    ("ΟΚ to pay", r"\u{39f}\u{39a} to pay"),
    ("перейдите на сосо.ру сейчас", r"перейдите на \u{441}\u{43e}\u{441}\u{43e}.\u{440}\u{443} сейчас"),
    ("a ԛ b", r"a \u{51b} b"),
    // Styled letters.
    ("ｒｍ -rf /", r"\u{ff52}\u{ff4d} -rf /"),
    ("pａypal", r"p\u{ff41}ypal"),
    ("𝐩𝐚𝐲𝐩𝐚𝐥", r"\u{1d429}\u{1d41a}\u{1d432}\u{1d429}\u{1d41a}\u{1d425}"),
    ("p𝖺ypal", r"p\u{1d5ba}ypal"),
    ("１００ or 100", r"\u{ff11}\u{ff10}\u{ff10} or 100"),
    ("paypaⅼ", r"paypa\u{217c}"),
    ("ɡoogle", r"\u{261}oogle"),
    // Digits of another writing among ours.
    ("1०0", r"1\u{966}0"),
    // Punctuation that is another.
    ("evil.com⁄paypal.com", r"evil.com\u{2044}paypal.com"),
    ("∕etc∕passwd", r"\u{2215}etc\u{2215}passwd"),
    ("paypal․com", r"paypal\u{2024}com"),
    ("user＠host", r"user\u{ff20}host"),
    ("http꞉//x", r"http\u{a789}//x"),
    ("rm −rf ‐x", r"rm \u{2212}rf \u{2010}x"),
    ("a;b\u{37e}c", r"a;b\u{37e}c"),
    // Marks.
    ("Z\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}algo", "Z\u{301}\u{302}\u{303}\u{304}\\u{305}\\u{306}algo"),
    ("a\u{301}\u{301}", "a\u{301}\\u{301}"),
    ("\u{301}ours", r"\u{301}ours"),
    (" \u{301}ours", r" \u{301}ours"),
    ("\"\u{338}", r#""\u{338}"#),
    ("de\u{336}n\u{336}y", r"de\u{336}n\u{336}y"),
    ("a\u{20e0}", r"a\u{20e0}"),
    ("a\u{20e3}", r"a\u{20e3}"),
];

#[test]
fn what_deceives_is_written_out_and_nothing_else_is() {
    let shown: Vec<_> = ROWS.iter().map(|(text, expected)| (text, text::line(text), expected)).collect();
    let wrong: Vec<_> = shown.iter().filter(|(_, shown, expected)| shown != *expected).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), ROWS.len());
    assert!(ROWS.len() >= 60);
}

#[test]
fn the_same_text_deceives_nobody_within_json() {
    for (text, _) in ROWS {
        let written = serde_json::Value::from(vec![*text, "plain"]).to_string();
        let shown = text::json(&written);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).ok(),
            serde_json::from_str(&written).ok(),
            "{shown}"
        );
        let loud = text::line(text).matches("\\u{").count();
        let in_json = shown.matches('\\').count();
        assert!(in_json >= loud, "{shown} against {}", text::line(text));
    }
}

#[test]
fn a_string_of_json_is_judged_by_itself_and_past_its_escapes() {
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
        assert_eq!(text::json(json), expected);
        assert_eq!(text::json_line(json), expected.replace(['\n', '\t'], " "));
    }
}

#[test]
fn every_line_of_a_block_is_behind_the_margin_and_none_is_cut() {
    let long = "x".repeat(10_000);
    let several = format!("one\r\ntwo\rthree\n{long}");
    assert_eq!(text::block(&several, "| "), format!("| one\n| two\\rthree\n| {long}\n"));
    assert_eq!(text::lines("one\r\ntwo\rthree\n\u{1b}"), "one\ntwo\\rthree\n\\u{1b}");
    assert_eq!(text::block("", "| "), "| \n");
    // A word is judged by the whole text and not by its line.
    assert_eq!(text::block("Это мир,\nа\nне сор", "| "), "| Это мир,\n| а\n| не сор\n");
}

#[test]
fn a_cut_says_how_much_is_cut() {
    assert_eq!(text::excerpt("as it\nis", 8), "as it\\nis");
    assert_eq!(text::excerpt(&"ü".repeat(10), 4), "üüüü … and 12 bytes more");
    assert_eq!(text::quoted("a\u{202e}\n", 80), r#""a\u{202e}\n""#);
    assert_eq!(text::quoted(r#"" and \"#, 80), r#""\" and \\""#);
    assert_eq!(text::quoted(&"ü".repeat(100), 80), format!("\"{}\" and 40 bytes more", "ü".repeat(80)));
}
