//! Generates `sdk/web/src/generated/alike.ts`, so that pages use the same confusable letters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use unicode_normalization::char::canonical_combining_class;
use unicode_script::{Script, UnicodeScript as _};

use crate::confusables::{is_local_digit, is_odd_latin, is_styled, like_ascii};

const KEPT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/web/src/generated/alike.ts"));

/// The TypeScript module with letters and digits that look like ASCII. Latin letters and symbols only if they are
/// unusual.
fn written() -> String {
    let mut scripts = BTreeMap::<_, String>::new();
    for c in ('\u{80}'..=char::MAX).filter(|c| c.is_alphanumeric() && like_ascii(*c) && !is_styled(*c)) {
        let script = c.script();
        if !matches!(script, Script::Latin | Script::Common) || is_odd_latin(c) || is_local_digit(c) {
            scripts.entry(script.full_name()).or_default().extend(c.escape_unicode());
        }
    }
    let plain = ('\u{80}'..=char::MAX).filter(|c| c.is_alphanumeric() && like_ascii(*c) && !is_styled(*c));
    let plain = plain.filter(|c| c.script() == Script::Latin && !is_odd_latin(*c));
    let plain: String = plain.flat_map(char::escape_unicode).collect();
    let viramas = ('\u{80}'..=char::MAX).filter(|c| canonical_combining_class(*c) == crate::invisible::VIRAMA);
    let viramas: String = viramas.flat_map(char::escape_unicode).collect();
    let mut text = "// Generated from host/escape. A test there compares this file. Do not edit.\n\n\
        /** Letters and digits that look like ASCII, by script. */\n\
        export const ALIKE: Readonly<Record<string, string>> = {\n"
        .to_owned();
    for (script, letters) in scripts {
        let _ = writeln!(text, "  {script}: \"{letters}\",");
    }
    let _ = write!(
        text,
        "}};\n\n/** Latin letters of ordinary words that look like ASCII. */\n\
        export const LATIN_ALIKE = \"{plain}\";\n\n\
        /** Marks after which a joiner selects the form of an Indic letter. */\nexport const VIRAMAS = \"{viramas}\";\n"
    );
    text
}

#[test]
fn pages_use_the_same_list_of_letters() {
    let written = written();
    assert!(written == KEPT, "write this to sdk/web/src/generated/alike.ts:\n{written}");
}
