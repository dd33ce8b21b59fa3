//! The names of a C header, from its comments. A block ends at an empty line: a comment, and the declarations that it describes.

use anyhow::{Result, bail};

use super::page::{Entry, MEMBER, MODULE, NAME};

/// The entries of a header: the header itself, its sections, and the blocks of declarations.
pub(super) fn read(header: &str, text: &str) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for block in blocks(text) {
        let (comment, code) = divided(&block);
        known(header, &code)?;
        if entries.is_empty() {
            let signature = format!("#include \"{header}\"");
            entries.push(Entry { depth: MODULE, name: header.into(), signature, text: comment, ..Entry::default() });
        } else if let Some((name, text)) = section(&comment) {
            entries.push(Entry { depth: MODULE, name, text, ..Entry::default() });
        } else if !code.starts_with("#if") {
            entries.extend(declared(comment, &code));
        }
    }
    Ok(entries)
}

/// A public name must not be missing on the page because this reader does not find it. So each statement declares a name of ours,
/// and conditions of the preprocessor are around no statement.
fn known(header: &str, code: &str) -> Result<()> {
    let code = plain(code).replace("extern \"C\" {", "");
    let is_missing = |statement: &String| code.starts_with("#if") || !name(statement).is_some_and(is_ours);
    match statements(&code).into_iter().find(is_missing) {
        Some(statement) => bail!(
            "{header}: `cargo xtask sdk-docs` finds no public name in this statement: {}",
            statement.split_whitespace().collect::<Vec<_>>().join(" ")
        ),
        None => Ok(()),
    }
}

/// The blocks of a header. Empty lines in comments and between braces end no block.
fn blocks(text: &str) -> Vec<String> {
    let (mut blocks, mut block, mut depth, mut in_comment) = (Vec::new(), String::new(), 0, false);
    for line in text.lines() {
        if line.is_empty() && depth == 0 && !in_comment {
            blocks.push(std::mem::take(&mut block));
            continue;
        }
        block += line;
        block.push('\n');
        in_comment = block.matches("/*").count() > block.matches("*/").count();
        // The declarations between these braces are as those outside.
        let code = plain(&block).replace("extern \"C\" {", "");
        depth = code.matches('{').count().saturating_sub(code.matches('}').count());
    }
    blocks.push(block);
    blocks.retain(|block| !block.trim().is_empty());
    blocks
}

/// The comment at the beginning of a block, without its signs, and the code after it.
fn divided(block: &str) -> (String, String) {
    let Some((comment, code)) = block.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) else {
        return (String::new(), block.trim_end().to_owned());
    };
    let line = |line: &str| {
        let line = line.trim_end();
        line.strip_prefix(" *").map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest)).to_owned()
    };
    let text = comment.lines().map(line).collect::<Vec<_>>().join("\n");
    (text.trim().to_owned(), code.trim().to_owned())
}

/// The name of a section and its text.
fn section(comment: &str) -> Option<(String, String)> {
    let (name, text) = comment.strip_prefix("---- ")?.split_once(" ----")?;
    Some((name.to_owned(), text.trim().to_owned()))
}

/// The entry of a block of declarations, and an entry without a text for each line that nothing describes.
fn declared(comment: String, code: &str) -> Vec<Entry> {
    let names: Vec<String> = names(code).into_iter().filter(|name| is_ours(name)).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let undescribed = undescribed(code, comment.is_empty());
    let fails = statements(&plain(code)).iter().any(|line| line.starts_with("bool ") && line.contains("tg_call *"));
    let described_by_line = comment.is_empty() && undescribed.is_empty();
    let text = if described_by_line { "Each line describes one of them.".to_owned() } else { comment };
    let name = names.join(", ");
    let member =
        |line: String| Entry { depth: MEMBER, name: format!("{name}: {line}"), signature: line, ..Entry::default() };
    let members: Vec<Entry> = undescribed.into_iter().map(member).collect();
    let entry = Entry { depth: NAME, name, signature: code.to_owned(), text, fails, ..Entry::default() };
    [entry.with_errors()].into_iter().chain(members).collect()
}

fn is_ours(name: &str) -> bool {
    ["tg_", "TG_", "TOOLGATE_"].iter().any(|prefix| name.starts_with(prefix))
}

/// The lines without a comment at their end or before them. Between braces every line needs one, elsewhere only a block without a
/// comment of its own.
fn undescribed(code: &str, everywhere: bool) -> Vec<String> {
    let (mut found, mut depth, mut described) = (Vec::new(), 0_usize, false);
    for line in code.lines().filter(|line| !line.ends_with('\\')) {
        let bare = plain(line);
        let is_member = depth > 0 && (bare.trim_end().ends_with(';') || bare.trim_end().ends_with(','));
        let is_declaration = depth == 0 && everywhere && bare.trim_end().ends_with(';');
        if (is_member || is_declaration) && !line.contains("/*") && !described && !bare.starts_with('}') {
            found.push(line.trim().to_owned());
        }
        depth = (depth + bare.matches('{').count()).saturating_sub(bare.matches('}').count());
        described = bare.trim().is_empty() && line.contains("/*");
    }
    found
}

/// The declared names, in order.
fn names(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in code.lines().filter_map(|line| line.strip_prefix("#define ")) {
        names.extend(identifiers(line).next().map(str::to_owned));
    }
    let statements = statements(&plain(code));
    names.extend(statements.iter().filter_map(|statement| name(statement)).map(str::to_owned));
    names
}

/// The name that a statement declares.
fn name(statement: &str) -> Option<&str> {
    match statement.split_once("(*") {
        Some((_, pointer)) => identifiers(pointer).next(),
        None => identifiers(statement.split('(').next().unwrap_or_default()).last(),
    }
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The statements outside of braces and macros, without comments. The last one may have no semicolon.
fn statements(code: &str) -> Vec<String> {
    let (mut statements, mut statement, mut depth) = (Vec::new(), String::new(), 0_usize);
    let mut in_macro = false;
    for line in code.lines() {
        let is_macro = in_macro || line.starts_with('#');
        in_macro = is_macro && line.ends_with('\\');
        if is_macro {
            continue;
        }
        for c in line.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                ';' if depth == 0 => statements.push(std::mem::take(&mut statement).trim().to_owned()),
                _ if depth == 0 => statement.push(c),
                _ => {}
            }
        }
    }
    statements.push(statement.trim().to_owned());
    statements.retain(|statement| !statement.is_empty());
    statements
}

/// The code without its comments.
fn plain(code: &str) -> String {
    let mut parts = code.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("*/").map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"/* About boxes.
 *
 *     #include "box.h"
 */
#ifndef BOX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Boxes ----
 *
 * All of them. */

/* A box. */
typedef struct {
    /* Opens { it. */
    bool (*open)(int hand);

    int size; /* in metres */
} tg_box;
typedef tg_box tg_crate;

tg_box tg_first(void);      /* the first box */
int tg_count(tg_call *call); /* the number */

/* Puts it.
 *
 * It fails if it is full. */
bool tg_put(tg_call *call, tg_box box) TG_FORMAT(1, 2);

/* The step. */
typedef bool (*tg_step)(tg_call *call);

/* Lists boxes. */
#define TG_BOXES(...)     \
    const tg_box all[] = {__VA_ARGS__}; \
    const size_t count = 1;

#endif
"#;

    #[test]
    fn header_has_sections_and_names() {
        let entries = read("box.h", HEADER).unwrap();
        let names: Vec<_> = entries.iter().map(|entry| (entry.depth, entry.name.as_str())).collect();
        let expected = [
            (MODULE, "box.h"),
            (MODULE, "Boxes"),
            (NAME, "tg_box, tg_crate"),
            (NAME, "tg_first, tg_count"),
            (NAME, "tg_put"),
            (NAME, "tg_step"),
            (NAME, "TG_BOXES"),
        ];
        assert_eq!(names, expected);
        assert_eq!(entries[0].text, "About boxes.\n\n    #include \"box.h\"");
        assert_eq!(entries[1].text, "All of them.");
        let put = &entries[4];
        assert_eq!((put.text.as_str(), put.errors.as_str(), put.fails), ("Puts it.", "It fails if it is full.", true));
        assert!(entries.iter().filter(|entry| entry.fails).count() == 1, "{entries:?}");
    }

    #[test]
    fn statement_without_a_public_name_is_an_error() {
        for code in [
            "enum { TG_A, TG_B };",
            "int other(void);",
            "#ifdef X\nint tg_x(void);\n#endif",
            "static inline int x(void) {\n    return 1;\n}",
        ] {
            let error = read("box.h", &format!("/* Boxes. */\n\n/* One. */\n{code}\n")).unwrap_err().to_string();
            assert!(error.starts_with("box.h: `cargo xtask sdk-docs` finds no public name"), "{code}: {error}");
        }
    }

    #[test]
    fn lines_without_a_comment_are_entries_without_a_text() {
        let header = "/* Boxes. */\n\n/* A box. */\ntypedef struct {\n    int a; /* yes */\n    int b;\n} tg_box;\n\n\
                      void tg_x(void); /* yes */\nvoid tg_y(void);\n";
        let entries = read("box.h", header).unwrap();
        let silent: Vec<_> = entries.iter().filter(|entry| entry.text.is_empty()).map(|entry| &entry.name).collect();
        assert_eq!(silent, ["tg_box: int b;", "tg_x, tg_y", "tg_x, tg_y: void tg_y(void);"]);
    }
}
