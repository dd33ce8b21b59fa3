//! Phrases that make a reader start a sentence again, and the length of test names. A finding names the plain word.

use super::{files, report};

/// Phrases with their replacements.
const PHRASES: [(&str, &str); 21] = [
    ("anew", "again"),
    ("by now", "now, or nothing"),
    ("thereby", "so, or a new sentence"),
    ("is none", "is not"),
    ("are none", "are not"),
    ("is told of", "hears of, is notified of, sees"),
    ("are told of", "hear of, are notified of, see"),
    ("for ever", "forever, or always"),
    ("counts no more", "is invalid, has expired, has been used"),
    ("whoever", "name the role: the caller, an approver, the client"),
    ("whatever", "name the thing, or start with the subject"),
    ("that there is not", "that does not exist"),
    ("that there are not", "that do not exist"),
    ("in the stead", "instead"),
    ("in its stead", "instead"),
    ("in the place of", "instead of"),
    ("is held against", "is checked against"),
    ("are held against", "are checked against"),
    ("is handed on", "is delegated, is passed on"),
    ("its like", "an equal one"),
    ("their like", "equal ones"),
];

/// The maximum length of a test's name.
const MAX_NAME: usize = 60;

/// The extensions of files that people write.
const WRITTEN: [&str; 10] = ["rs", "md", "ts", "tsx", "js", "mjs", "py", "go", "c", "h"];

#[test]
fn phrases_that_were_replaced_do_not_come_back() {
    let mut findings = Vec::new();
    for (path, text) in WRITTEN.iter().flat_map(|ending| files(ending)) {
        if path.ends_with("tidy/english.rs") || path.contains("/generated/") {
            continue;
        }
        for (line, number) in text.lines().zip(1..) {
            // Python's `is None` is code.
            let line = line.replace(" is None", "").to_lowercase();
            let found = PHRASES.iter().filter(|(phrase, _)| has_phrase(&line, phrase));
            findings.extend(found.map(|(phrase, instead)| format!("{path}:{number}: \"{phrase}\"; write: {instead}")));
        }
    }
    report("say it in plain English", findings);
}

/// Whether a line contains this phrase as whole words.
fn has_phrase(line: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + phrase.len()..]);
        !before.ends_with(is_word) && !after.starts_with(is_word)
    })
}

#[test]
fn names_of_tests_are_short() {
    let of_file = |(path, text): (String, String)| {
        let long = test_names(&text).filter(|name| name.len() > MAX_NAME);
        long.map(|name| format!("{path}: {name}")).collect::<Vec<_>>()
    };
    let remedy = format!("say what happens in at most {MAX_NAME} characters");
    report(&remedy, files("rs").flat_map(of_file).collect());
}

/// The names of the tests in a source text: the functions after a test attribute.
fn test_names(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().map(str::trim_start).filter_map(move |line| {
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let (_, name) = line.split_once("fn ").filter(|_| is_test && !line.starts_with("//"))?;
        is_test = false;
        name.split('(').next()
    })
}

#[test]
fn only_functions_after_a_test_attribute_are_tests() {
    let text = "fn helper() {}\n#[test]\n#[expect(unused)]\n/// A fn of a test.\nfn one() {\n}\n#[tokio::test]\nasync fn two() {}";
    assert_eq!(test_names(text).collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn a_phrase_is_found_as_whole_words() {
    for (line, phrase, found) in [
        ("made anew.", "anew", true),
        ("janews", "anew", false),
        ("a_whoever", "whoever", false),
        ("that is none, or", "is none", true),
        ("this nonet", "is none", false),
    ] {
        assert_eq!(has_phrase(line, phrase), found, "{line}");
    }
}
