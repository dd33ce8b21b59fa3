//! Phrases that make a reader start a sentence again, and the length of test names. A finding names the plain word.

use super::{files, report};

/// A phrase, the number of lines that may still contain it, and its replacement. The numbers may only shrink.
const PHRASES: [(&str, usize, &str); 21] = [
    ("anew", 13, "again"),
    ("by now", 2, "now, or nothing"),
    ("thereby", 0, "so, or a new sentence"),
    ("is none", 68, "is not"),
    ("are none", 2, "are not"),
    ("is told of", 1, "hears of, is notified of, sees"),
    ("are told of", 3, "hear of, are notified of, see"),
    ("for ever", 3, "forever, or always"),
    ("counts no more", 1, "is invalid, has expired, has been used"),
    ("whoever", 23, "name the role: the caller, an approver, the client"),
    ("whatever", 24, "name the thing, or start with the subject"),
    ("that there is not", 11, "that does not exist"),
    ("that there are not", 0, "that do not exist"),
    ("in the stead", 0, "instead"),
    ("in its stead", 2, "instead"),
    ("in the place of", 4, "instead of"),
    ("is held against", 1, "is checked against"),
    ("are held against", 0, "are checked against"),
    ("is handed on", 1, "is delegated, is passed on"),
    ("its like", 1, "an equal one"),
    ("their like", 0, "equal ones"),
];

/// The maximum length of a test's name.
const MAX_NAME: usize = 60;

/// The number of tests with longer names. It may only shrink.
const LONGER_NAMES: usize = 47;

/// The extensions of files that people write.
const WRITTEN: [&str; 10] = ["rs", "md", "ts", "tsx", "js", "mjs", "py", "go", "c", "h"];

#[test]
fn phrases_that_were_replaced_do_not_come_back() {
    let mut found: [Vec<String>; PHRASES.len()] = Default::default();
    for (path, text) in WRITTEN.iter().flat_map(|ending| files(ending)) {
        if path.ends_with("tidy/english.rs") {
            continue;
        }
        for (line, number) in text.lines().zip(1..) {
            let line = line.to_lowercase();
            for ((phrase, ..), places) in PHRASES.iter().zip(&mut found) {
                places.extend(has_phrase(&line, phrase).then(|| format!("{path}:{number}")));
            }
        }
    }
    let mut findings = Vec::new();
    for ((phrase, allowed, instead), places) in PHRASES.iter().zip(&found) {
        if places.len() > *allowed {
            let shown = places.iter().take(10).map(String::as_str).collect::<Vec<_>>().join(", ");
            findings.push(format!(
                "\"{phrase}\" occurs {} times, allowed {allowed}; write: {instead}. {shown}",
                places.len()
            ));
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
        let names: Vec<String> = test_names(&text).map(|name| format!("{path}: {name}")).collect();
        names
    };
    let is_long = |found: &String| found.rsplit(' ').next().is_some_and(|name| name.len() > MAX_NAME);
    let findings: Vec<String> = files("rs").flat_map(of_file).filter(is_long).collect();
    let remedy = format!("say what happens in at most {MAX_NAME} characters; {LONGER_NAMES} names may be longer");
    report(&remedy, if findings.len() > LONGER_NAMES { findings } else { Vec::new() });
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
