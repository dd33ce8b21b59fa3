//! One page: its names, the rules that they must keep, and their form in Markdown.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The depths of entries. The first three are headings of this level, and the last one is a row of a list.
pub(super) const MODULE: usize = 2;
pub(super) const NAME: usize = 3;
pub(super) const METHOD: usize = 4;
pub(super) const MEMBER: usize = 5;

/// The beginning of a paragraph that describes the errors, in languages without a sign for it.
const FAILS: &str = "It fails";

/// A public name, or a module of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) signature: String,
    /// Markdown.
    pub(super) text: String,
    pub(super) errors: String,
    /// Whether it needs a text about its errors, unless the page lists it as infallible.
    pub(super) fails: bool,
}

/// The entries that a reader printed as JSON.
pub(super) fn entries(json: &str) -> Result<Vec<Entry>> {
    let list: Vec<Value> = serde_json::from_str(json).context("the reader did not print a JSON list")?;
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().trim().to_owned();
    let entry = |one: &Value| Entry {
        depth: one["depth"].as_u64().map_or(NAME, |depth| usize::try_from(depth).unwrap_or(NAME)),
        name: text(one, "name"),
        signature: text(one, "signature"),
        text: text(one, "text"),
        errors: text(one, "errors"),
        fails: one["fails"] == true,
    };
    Ok(list.iter().map(entry).map(Entry::with_errors).collect())
}

impl Entry {
    /// Moves the paragraph about errors out of the text.
    pub(super) fn with_errors(mut self) -> Self {
        let is_error = |paragraph: &&str| paragraph.starts_with(FAILS);
        let (errors, text): (Vec<&str>, Vec<&str>) = self.text.split("\n\n").partition(is_error);
        if !errors.is_empty() {
            (self.errors, self.text) = (errors.join("\n\n"), text.join("\n\n"));
        }
        self
    }
}

/// A page, without its entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub(super) file: &'static str,
    pub(super) title: &'static str,
    /// The folder of the SDK.
    pub(super) folder: &'static str,
    /// The titles and files of the pages in `docs/write-tools`.
    pub(super) guides: &'static [(&'static str, &'static str)],
    /// The language of signatures.
    pub(super) code: &'static str,
    /// The form of a text about errors, for messages.
    pub(super) errors: &'static str,
    /// Another sentence at the beginning, or nothing.
    pub(super) note: &'static str,
    /// Functions that cannot fail, in languages whose signatures do not say it.
    pub(super) infallible: &'static [&'static str],
}

impl Page {
    pub(super) fn path(&self) -> String {
        format!("docs/sdk/{}", self.file)
    }

    /// The names that break a rule, with the remedy.
    pub(super) fn findings(&self, entries: &[Entry]) -> Vec<String> {
        let mut findings = Vec::new();
        let mut module = "";
        for entry in entries {
            if entry.depth == MODULE {
                module = &entry.name;
            }
            let listed = self.infallible.contains(&entry.name.as_str());
            let mut found = |what: &str| findings.push(format!("{module}: {}: {what}", entry.name));
            if entry.text.is_empty() {
                found("write a text about it");
            }
            match (entry.fails, listed, entry.errors.is_empty()) {
                (true, false, true) => found(&format!(
                    "write {} about its errors, or list it as infallible in xtask/src/sdk_docs.rs",
                    self.errors
                )),
                (_, true, false) => found("it has a text about errors and is listed as infallible"),
                _ => {}
            }
        }
        let unknown = self.infallible.iter().filter(|name| !entries.iter().any(|entry| entry.name == **name));
        findings.extend(unknown.map(|name| format!("{name}: it is listed as infallible and does not exist")));
        findings
    }

    /// The page in Markdown.
    pub(super) fn render(&self, entries: &[Entry]) -> String {
        let Self { title, folder, .. } = self;
        let mut blocks = vec![
            format!("# {title}"),
            format!(
                "Every public name, with its signature, text and errors. `cargo xtask sdk-docs` writes this page from \
                 [`{folder}`](../../{folder}). Change it there.\n{}",
                self.introduction()
            ),
            contents(entries),
        ];
        let mut in_list = false;
        for entry in entries {
            let is_row = entry.depth == MEMBER;
            match blocks.last_mut() {
                Some(list) if is_row && in_list => *list += &format!("\n{}", row(entry)),
                _ if is_row => blocks.push(row(entry)),
                _ => blocks.extend(self.section(entry)),
            }
            in_list = is_row;
        }
        blocks.join("\n\n") + "\n"
    }

    fn introduction(&self) -> String {
        let guides: Vec<_> =
            self.guides.iter().map(|(title, file)| format!("[{title}](../write-tools/{file})")).collect();
        let readme = format!("[README](../../{}/README.md) explains the concepts. {}", self.folder, self.note);
        let text = match guides.as_slice() {
            [] => format!("The {readme}"),
            [one] => format!("{one} leads from nothing to an approved call, and the {readme}"),
            several => format!("{} lead from nothing to an approved call, and the {readme}", several.join(" and ")),
        };
        text.trim_end().to_owned()
    }

    fn section(&self, entry: &Entry) -> Vec<String> {
        let mut blocks = vec![format!("{} {}", "#".repeat(entry.depth), heading(entry))];
        if !entry.signature.is_empty() {
            blocks.push(format!("```{}\n{}\n```", self.code, entry.signature));
        }
        blocks.push(entry.text.clone());
        if entry.errors.starts_with("- ") {
            blocks.push(format!("**Errors**\n\n{}", entry.errors));
        } else if !entry.errors.is_empty() {
            blocks.push(format!("**Errors.** {}", entry.errors));
        }
        blocks
    }
}

/// A row of a list: the member, and its text in one line.
fn row(entry: &Entry) -> String {
    let words = entry.text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("- `{}`: {words}", entry.signature)
}

/// The heading of an entry: code, unless it is a section or has a title.
fn heading(entry: &Entry) -> String {
    let name = &entry.name;
    if entry.depth == MODULE && (entry.signature.is_empty() || name.contains(' ')) {
        return name.clone();
    }
    name.split(", ").map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ")
}

/// The list of modules with their names.
fn contents(entries: &[Entry]) -> String {
    let modules = entries.iter().enumerate().filter(|(_, entry)| entry.depth == MODULE);
    let rows = modules.map(|(at, module)| {
        let inside = entries[at + 1..].iter().take_while(|entry| entry.depth != MODULE);
        // Go's functions are beside the type that they return.
        let is_named =
            |entry: &&Entry| entry.depth == NAME || entry.depth == METHOD && !entry.name.contains(['.', ':']);
        let names: Vec<_> = inside.filter(is_named).map(heading).collect();
        let link = format!("- [{}](#{})", heading(module), anchor(&module.name));
        if names.is_empty() { link } else { format!("{link}: {}", names.join(", ")) }
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// The anchor that web sites give a heading.
fn anchor(name: &str) -> String {
    let kept = name.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
}

/// The number of the first line that differs.
pub(super) fn difference(there: &str, wanted: &str) -> Option<usize> {
    if there == wanted {
        return None;
    }
    let same = there.lines().zip(wanted.lines()).take_while(|(one, other)| one == other).count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page {
        file: "x.md",
        title: "The X SDK",
        folder: "sdk/x",
        guides: &[("Tools in X", "x.md")],
        code: "x",
        errors: "a line `fails`",
        note: "",
        infallible: &["Box.size"],
    };

    fn entry(depth: usize, name: &str, text: &str) -> Entry {
        let signature = format!("def {name}");
        Entry { depth, name: name.into(), signature, text: text.into(), ..Entry::default() }
    }

    fn page() -> Vec<Entry> {
        let read = Entry { fails: true, ..entry(METHOD, "Box.read", "Reads it.\n\nIt fails if it is shut.") };
        vec![
            entry(MODULE, "x.boxes", "Boxes."),
            entry(NAME, "Box", "A box."),
            entry(MEMBER, "colour", "Its\n  colour."),
            entry(MEMBER, "lid", "Its lid."),
            read.with_errors(),
            Entry { fails: true, ..entry(METHOD, "Box.size", "Its size.") },
        ]
    }

    #[test]
    fn page_has_headings_signatures_and_errors() {
        assert_eq!(PAGE.findings(&page()), Vec::<String>::new());
        let text = PAGE.render(&page());
        let (_, body) = text.split_once("concepts.\n\n").unwrap();
        let expected = "- [`x.boxes`](#xboxes): `Box`\n\n\
            ## `x.boxes`\n\n```x\ndef x.boxes\n```\n\nBoxes.\n\n\
            ### `Box`\n\n```x\ndef Box\n```\n\nA box.\n\n\
            - `def colour`: Its colour.\n- `def lid`: Its lid.\n\n\
            #### `Box.read`\n\n```x\ndef Box.read\n```\n\nReads it.\n\n**Errors.** It fails if it is shut.\n\n\
            #### `Box.size`\n\n```x\ndef Box.size\n```\n\nIts size.\n";
        assert_eq!(body, expected);
    }

    #[test]
    fn each_missing_text_is_a_finding() {
        let mut entries = page();
        entries[2].text.clear();
        entries[4].errors.clear();
        entries[5].errors = "It fails too.".into();
        entries.push(Entry { fails: true, ..entry(NAME, "open", "Opens one.") });
        let findings = PAGE.findings(&entries);
        let begins = [
            "x.boxes: colour: write a text",
            "x.boxes: Box.read: write a line `fails`",
            "x.boxes: Box.size: it has a text about errors",
            "x.boxes: open: write a line `fails`",
        ];
        assert_eq!(findings.len(), begins.len(), "{findings:?}");
        for (finding, begin) in findings.iter().zip(begins) {
            assert!(finding.starts_with(begin), "{finding}");
        }
        let gone = PAGE.findings(&entries[..3]);
        assert!(gone.contains(&"Box.size: it is listed as infallible and does not exist".to_owned()), "{gone:?}");
    }

    #[test]
    fn first_different_line_is_found() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(difference("a\n", "a\nb\n"), Some(2));
    }
}
