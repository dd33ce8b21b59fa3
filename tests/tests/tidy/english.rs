//! Plain English: replaced phrases and words, sentences that begin with a clause, and the length of test names. A finding
//! names the plain word.

use super::{files, report};

/// Phrases with their replacements.
const PHRASES: [(&str, &str); 41] = [
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
    ("hand an approval on", "delegate an approval"),
    ("link by mail", "one-time link"),
    ("links by mail", "one-time links"),
    ("silence that", "a timeout that"),
    ("its like", "an equal one"),
    ("their like", "equal ones"),
    ("link of the chain", "chain entry"),
    ("links of the chain", "chain entries"),
    ("head kept elsewhere", "checkpoint"),
    ("is masked", "is redacted"),
    ("are masked", "are redacted"),
    ("is sealed", "is signed"),
    ("the longest that", "the maximum"),
    ("so many", "this many, or name the number"),
    (", about.", "approximately"),
    ("is taken for", "is treated as"),
    ("the directory", "the folder"),
    ("this directory", "this folder"),
    ("data directory", "data folder"),
    ("they judge", "they check, they decide about"),
    ("the plugin wants", "the plugin requests"),
];

/// Words with their replacements. They are not used in identifiers either.
const WORDS: [(&str, &str); 25] = [
    ("admission", "reservation"),
    ("admit", "permit, check, accept"),
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
    ("loud", "style, warning, message"),
    ("paper", "manifest"),
    ("papers", "manifests"),
    ("seat", "permit, connection slot"),
    ("seats", "permits, connection slots"),
    ("spending", "usage"),
    ("stands", "applies, is, remains"),
    ("thereby", "so, or a new sentence"),
    ("told", "notified, informed, reported, received"),
    ("traffic", "bytes in and out"),
    ("unjudged", "unchecked"),
    ("visits", "in-flight requests"),
];

/// First words of sentences whose subject is a clause: "What a caller sees".
const CLAUSES: [&str; 4] = ["What", "Whatever", "Whoever", "Whichever"];

/// First words of constants that are limits, with their replacements.
const LIMITS: [(&str, &str); 6] = [
    ("LARGEST", "MAX_"),
    ("LEAST", "MIN_"),
    ("LONGEST", "MAX_"),
    ("MOST", "MAX_"),
    ("SHORTEST", "MIN_"),
    ("SMALLEST", "MIN_"),
];

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
fn limits_are_called_max_or_min() {
    let mut findings = Vec::new();
    for (path, text) in files("rs").filter(|(path, _)| !path.ends_with("tidy/english.rs")) {
        for (line, number) in text.lines().zip(1..) {
            let Some((_, name)) = line.split_once("const ") else { continue };
            let found = LIMITS.iter().find(|(word, _)| name.split(['_', ':']).next() == Some(word));
            findings.extend(found.map(|(word, instead)| format!("{path}:{number}: {word}; write: {instead}")));
        }
    }
    report("limits have one style", findings);
}

#[test]
fn sentences_do_not_begin_with_a_clause() {
    let mut findings = Vec::new();
    for (path, text) in written() {
        let is_page = path.ends_with(".md");
        let prose = if is_page { text.clone() } else { comments(&text) };
        let begins = sentences(&prose).filter(|(_, sentence)| begins_with_a_clause(sentence));
        let number = |at: usize| prose[..at].matches('\n').count() + 1;
        findings.extend(begins.map(|(at, sentence)| format!("{path}:{}: {sentence}", number(at))));
    }
    report("name the thing: \"The answer of a caller\", not \"What a caller answers\"", findings);
}

/// The comments of a source text, each on its own line, with empty lines instead of code.
fn comments(text: &str) -> String {
    const MARKS: [&str; 6] = ["///", "//!", "//", "# ", "/**", "/*"];
    let comment = |line: &str| {
        let trimmed = line.trim_start();
        MARKS.iter().find_map(|mark| trimmed.strip_prefix(mark)).map(|rest| rest.trim().to_owned())
    };
    text.lines().map(|line| comment(line).unwrap_or_default() + "\n").collect()
}

/// The sentences of a text that begin a paragraph, an item or a cell, or follow a full stop: the position of each, and its
/// text up to the end.
fn sentences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let begins = |at: usize| {
        let before = text[..at].trim_end_matches([' ', '\n']);
        let between = &text[before.len()..at];
        let is_paragraph = between.matches('\n').count() > 1 || before.is_empty();
        let is_item = before.ends_with('|') || before.ends_with("\n-") || before == "-";
        is_paragraph || is_item || before.ends_with(['.', '!']) && !between.is_empty()
    };
    let starts = text.char_indices().filter(|(_, c)| c.is_uppercase()).map(|(at, _)| at);
    starts.filter(move |at| begins(*at)).map(|at| {
        let rest = &text[at..];
        let end = rest.find(['.', '?', '!', '|']).map_or(rest.len(), |end| end + 1);
        (at, rest[..end].split("\n\n").next().unwrap_or_default())
    })
}

/// Whether a sentence begins with a clause instead of a noun. Questions, and orders such as "What to count", are fine.
fn begins_with_a_clause(sentence: &str) -> bool {
    let mut words = sentence.split_whitespace();
    let first = words.next().unwrap_or_default();
    CLAUSES.contains(&first) && words.next() != Some("to") && !sentence.ends_with('?')
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
    let written = ["rs", "ts", "tsx", "js", "mjs"].into_iter().flat_map(files);
    report(&remedy, written.flat_map(of_file).collect());
}

/// The names of the tests in a source text: the functions after a test attribute, and the first arguments of `test` and `it`.
fn test_names(text: &str) -> impl Iterator<Item = &str> {
    let begins_a_line = |at: usize| text[..at].trim_end_matches(' ').chars().next_back().is_none_or(|c| c == '\n');
    let calls = ["test(", "it("].into_iter().flat_map(|call| text.match_indices(call));
    let named = calls.filter(move |(at, _)| begins_a_line(*at)).filter_map(|(at, call)| {
        let rest = text[at + call.len()..].trim_start();
        rest.strip_prefix('"')?.split('"').next()
    });
    let mut is_test = false;
    let functions = text.lines().map(str::trim_start).filter_map(move |line| {
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let (_, name) = line.split_once("fn ").filter(|_| is_test && !line.starts_with("//"))?;
        is_test = false;
        name.split('(').next()
    });
    functions.chain(named)
}

#[test]
fn only_functions_after_a_test_attribute_are_tests() {
    let text = "fn helper() {}\n#[test]\n#[expect(unused)]\n/// A fn of a test.\nfn one() {\n}\n#[tokio::test]\nasync fn two() {}";
    assert_eq!(test_names(text).collect::<Vec<_>>(), ["one", "two"]);
    let text = "test(\"one\", () => {});\nit(\n  \"two\",\nsubmit(other);\n";
    assert_eq!(test_names(text).collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn words_are_found_inside_identifiers() {
    assert_eq!(parts("let told_page = readAnew(x2);"), ["let", "told", "page", "read", "anew", "x2"]);
    assert_eq!(parts("const MAX_SEATS"), ["const", "max", "seats"]);
}

#[test]
fn clauses_are_found_in_comments_and_pages() {
    let text = "//! One.\n//! what\nx // What\n  /// One. What a caller sees.\n# What to do.\ncode\n// What is it?\n";
    let found = |text: &str| -> Vec<String> {
        sentences(text).filter(|(_, s)| begins_with_a_clause(s)).map(|(_, s)| s.to_owned()).collect()
    };
    assert_eq!(found(&comments(text)), ["What a caller sees."]);
    assert_eq!(
        found("One.\nWhat is two.\n\n- What is three\n\n| What is four |"),
        ["What is two.", "What is three", "What is four |"]
    );
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
