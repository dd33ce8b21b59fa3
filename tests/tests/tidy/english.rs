//! Plain English: replaced phrases and words, comments that begin with a clause, and the length of test names. A finding
//! names the plain word.

use super::{files, report};

/// Phrases with their replacements.
const PHRASES: [(&str, &str); 29] = [
    ("by now", "now, or nothing"),
    ("is none", "is not"),
    ("are none", "are not"),
    ("is gone", "was removed, has ended"),
    ("are gone", "were removed, have ended"),
    ("gone away", "was removed, has ended"),
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
    ("handed on", "delegated, passed on"),
    ("hands on", "delegates, passes on"),
    ("hand on", "delegate, pass on"),
    ("its like", "an equal one"),
    ("their like", "equal ones"),
    ("link of the chain", "chain entry"),
    ("links of the chain", "chain entries"),
    ("head kept elsewhere", "checkpoint"),
    ("is masked", "is redacted"),
    ("are masked", "are redacted"),
    ("is sealed", "is signed"),
    ("the longest that", "the maximum"),
];

/// Words with their replacements. They are not used in identifiers either.
const WORDS: [(&str, &str); 22] = [
    ("admission", "reservation"),
    ("admits", "accepts"),
    ("admitted", "accepted"),
    ("anew", "again"),
    ("courier", "delivery worker"),
    ("couriers", "delivery workers"),
    ("ink", "style"),
    ("judged", "checked, decided, verdict"),
    ("judges", "checks, decides about"),
    ("judging", "checking, deciding"),
    ("judgement", "decision, check"),
    ("judgements", "decisions, checks"),
    ("paper", "manifest"),
    ("papers", "manifests"),
    ("seat", "permit, connection slot"),
    ("seats", "permits, connection slots"),
    ("spending", "usage"),
    ("stands", "applies, is, remains"),
    ("thereby", "so, or a new sentence"),
    ("told", "notified, informed, reported, received"),
    ("traffic", "bytes in and out"),
    ("visits", "in-flight requests"),
];

/// First words of comments that are nouns only by a clause: "What a caller sees".
const CLAUSES: [&str; 4] = ["what", "whatever", "whoever", "whichever"];

/// The maximum length of a test's name.
const MAX_NAME: usize = 60;

/// The extensions of files that people write.
const WRITTEN: [&str; 15] =
    ["rs", "md", "ts", "tsx", "js", "mjs", "py", "go", "c", "h", "wit", "toml", "html", "css", "tmpl"];

/// Files that we write and may change. WASI's interfaces are not ours, and released interfaces are frozen.
fn written() -> impl Iterator<Item = (String, String)> {
    let is_ours = |path: &str| {
        let is_frozen = path.starts_with("tests/fixtures/") || path.starts_with("wit/") && path.contains("/deps/");
        !is_frozen && !path.ends_with("tidy/english.rs") && !path.contains("/generated/")
    };
    WRITTEN.iter().flat_map(|ending| files(ending)).filter(move |(path, _)| is_ours(path))
}

#[test]
fn phrases_that_were_replaced_do_not_come_back() {
    let mut findings = Vec::new();
    for (path, text) in written() {
        for (line, number) in text.lines().zip(1..) {
            // Python's `is None` is code.
            let lower = line.replace(" is None", "").to_lowercase();
            let phrases = PHRASES.iter().filter(|(phrase, _)| has_phrase(&lower, phrase));
            let parts = parts(line);
            let words = WORDS.iter().filter(|(word, _)| parts.iter().any(|part| part == word));
            let found = phrases.chain(words);
            findings.extend(found.map(|(phrase, instead)| format!("{path}:{number}: \"{phrase}\"; write: {instead}")));
        }
    }
    report("say it in plain English", findings);
}

#[test]
fn comments_do_not_begin_with_a_clause() {
    let mut findings = Vec::new();
    for (path, text) in written().filter(|(path, _)| !path.ends_with(".md")) {
        let begins = comments(&text).filter(|(_, comment)| begins_with_a_clause(comment));
        findings.extend(begins.map(|(number, comment)| format!("{path}:{number}: {comment}")));
    }
    report("name the thing: \"The answer of a caller\", not \"What a caller answers\"", findings);
}

/// The comments of a text that begin with `//` or `#`: the number and the text of each first line.
fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    const MARKS: [&str; 6] = ["///", "//!", "//", "# ", "/**", "/*"];
    let comment = |line: &str| {
        let trimmed = line.trim_start();
        let mark = MARKS.iter().find(|mark| trimmed.starts_with(**mark))?;
        Some(line.len() - trimmed.len() + mark.len())
    };
    let mut inside = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let begin = comment(line);
        let is_first = begin.is_some() && !inside;
        inside = begin.is_some();
        begin.filter(|_| is_first).map(|begin| (number, line[begin..].trim()))
    })
}

/// Whether a comment begins with a clause instead of a noun. Questions, and orders such as "What to count", are fine.
fn begins_with_a_clause(comment: &str) -> bool {
    let mut words = comment.split_whitespace();
    let first = words.next().unwrap_or_default().to_lowercase();
    CLAUSES.contains(&first.as_str()) && words.next() != Some("to") && !comment.ends_with('?')
}

/// The words of a line in lower case, those inside identifiers included.
fn parts(line: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(line.len() + 8);
    let mut after_lower = false;
    for c in line.chars() {
        if c.is_uppercase() && after_lower {
            spaced.push(' ');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        spaced.extend(c.to_lowercase());
    }
    spaced.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_owned).collect()
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
fn words_are_found_inside_identifiers() {
    assert_eq!(parts("let told_page = readAnew(x2);"), ["let", "told", "page", "read", "anew", "x2"]);
    assert_eq!(parts("const MAX_SEATS"), ["const", "max", "seats"]);
}

#[test]
fn only_the_first_line_of_a_comment_counts() {
    let text = "//! One.\n//! what\nx // What\n  /// What a caller sees.\n# What to do.\ncode\n// What is it?\n";
    let found: Vec<_> = comments(text).collect();
    assert_eq!(found, [(1, "One."), (4, "What a caller sees."), (7, "What is it?")]);
    for (comment, is_clause) in [("What a caller sees.", true), ("What to do.", false), ("What is it?", false)] {
        assert_eq!(begins_with_a_clause(comment), is_clause, "{comment}");
    }
}

#[test]
fn a_phrase_is_found_as_whole_words() {
    for (line, phrase, found) in [
        ("for ever.", "for ever", true),
        ("for everyone", "for ever", false),
        ("a_whoever", "whoever", false),
        ("that is none, or", "is none", true),
        ("this nonet", "is none", false),
    ] {
        assert_eq!(has_phrase(line, phrase), found, "{line}");
    }
}
