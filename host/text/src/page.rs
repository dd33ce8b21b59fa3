//! What pages are given of what is known here: `sdk/web/src/generated/alike.ts`, so that they judge by the same letters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use unicode_normalization::char::canonical_combining_class;
use unicode_script::{Script, UnicodeScript as _};

use crate::looks::{is_local_digit, is_odd_latin, is_styled, like_ascii};

const KEPT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/web/src/generated/alike.ts"));

/// The letters and digits that look like those of ASCII, as a module. Of Latin and of symbols those that are odd.
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
    let viramas = ('\u{80}'..=char::MAX).filter(|c| canonical_combining_class(*c) == crate::unseen::VIRAMA);
    let viramas: String = viramas.flat_map(char::escape_unicode).collect();
    let mut text = "// Written from what host/text goes by; a test of it says what stands here. Do not edit.\n\n\
        /** By script, the letters and digits that one reads as those of ASCII. */\n\
        export const ALIKE: Readonly<Record<string, string>> = {\n"
        .to_owned();
    for (script, letters) in scripts {
        let _ = writeln!(text, "  {script}: \"{letters}\",");
    }
    let _ = write!(
        text,
        "}};\n\n/** Letters of Latin that languages write their words with, and that one reads as those of ASCII. */\n\
        export const LATIN_ALIKE = \"{plain}\";\n\n\
        /** Marks behind which a joiner chooses the form of an Indic letter. */\nexport const VIRAMAS = \"{viramas}\";\n"
    );
    text
}

#[test]
fn pages_use_the_same_list_of_letters() {
    let written = written();
    assert!(written == KEPT, "write this to sdk/web/src/generated/alike.ts:\n{written}");
}
