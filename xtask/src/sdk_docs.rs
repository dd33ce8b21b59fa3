//! Pages with every public name of the SDKs: signature, text and errors. They are generated from the sources, and CI compares
//! them. One reader per language finds the names; `page` checks and writes them.

mod c;
mod page;
mod rust;

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::languages;
use crate::workspace::{Invocation, root};
use page::{Entry, Page};

/// The folder of the readers in other languages, from the folder of an SDK.
const READERS: &str = "../../xtask/src/sdk_docs";

/// The headers that plugins and their tests include.
const HEADERS: [&str; 2] = ["toolgate.h", "toolgate_test.h"];

const RUST: Page = Page {
    file: "rust.md",
    title: "The Rust SDK",
    folder: "sdk/rust",
    guides: &[("Tools in Rust", "rust.md")],
    code: "rust",
    errors: "a section `# Errors`",
    note: "",
    infallible: &[],
};

const PYTHON: Page = Page {
    file: "python.md",
    title: "The Python SDK",
    folder: "sdk/python",
    guides: &[("Tools in Python", "python.md")],
    code: "python",
    errors: "a section `Raises:`",
    note: "",
    infallible: &[
        "Call.stop_requested",
        "DeclarationError",
        "Denied",
        "NotCarriedOut",
        "Response.header",
        "Memory.kill_after",
        "Attempt.again",
        "answered",
        "approved",
        "approved_as",
        "denied",
        "expired",
        "received",
        "returned",
    ],
};

const JAVASCRIPT: Page = Page {
    file: "javascript.md",
    title: "The JavaScript and TypeScript SDK",
    folder: "sdk/js",
    guides: &[("Tools in JavaScript", "javascript.md"), ("Tools in TypeScript", "typescript.md")],
    code: "ts",
    errors: "a tag `@throws`",
    note: "JavaScript and TypeScript share these declarations.",
    infallible: &[
        "Call.log",
        "Call.stopRequested",
        "jsonSchema",
        "Response.header",
        "Response.bytes",
        "Response.text",
        "answered",
        "approved",
        "denied",
        "expired",
        "received",
        "returned",
        "Console.debug",
        "Console.log",
        "Console.info",
        "Console.warn",
        "Console.error",
    ],
};

const WEB: Page = Page {
    file: "web.md",
    title: "The SDK for web pages",
    folder: "sdk/web",
    guides: &[],
    code: "ts",
    errors: "a tag `@throws`",
    note: "The OpenAPI document describes the members of the types that are `Schemas[…]`.",
    infallible: &[
        "ToolgateError.of",
        "ToolgateApproval.approve",
        "ToolgateApproval.approveEditOf",
        "ToolgateApproval.deny",
        "ToolgateApproval.delegate",
        "ToolgateElicitation.answer",
        "ToolgateInbox.answerSelected",
    ],
};

const GO: Page = Page {
    file: "go.md",
    title: "The Go SDK",
    folder: "sdk/go",
    guides: &[("Tools in Go", "go.md")],
    code: "go",
    errors: "a paragraph that begins with \"It fails\"",
    note: "",
    // These return an error that they make or have.
    infallible: &["Failure.Unwrap", "InvalidArguments", "Failed", "Unavailable"],
};

const C: Page = Page {
    file: "c.md",
    title: "The C SDK",
    folder: "sdk/c",
    guides: &[("Tools in C", "c.md")],
    code: "c",
    errors: "a paragraph that begins with \"It fails\"",
    note: "",
    infallible: &["tg_stop_requested"],
};

/// An SDK with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sdk {
    Rust,
    Python,
    JavaScript,
    Web,
    Go,
    C,
}

impl Sdk {
    const ALL: [Self; 6] = [Self::Rust, Self::Python, Self::JavaScript, Self::Web, Self::Go, Self::C];

    const fn page(self) -> Page {
        match self {
            Self::Rust => RUST,
            Self::Python => PYTHON,
            Self::JavaScript => JAVASCRIPT,
            Self::Web => WEB,
            Self::Go => GO,
            Self::C => C,
        }
    }

    fn read(self) -> Result<Vec<Entry>> {
        let reader = |program: &str, file: &str, folder| {
            Invocation::new(&format!("{program} {READERS}/{file}")).in_folder(folder)
        };
        match self {
            Self::Rust => rust::read(&root().join("sdk/rust/src")),
            Self::Python => page::entries(&reader("python3 -B", "python.py", "sdk/python").output()?),
            Self::JavaScript => page::entries(&reader("node", "javascript.mjs", "sdk/js").output()?),
            Self::Web => page::entries(&reader("node", "web.mjs", "sdk/web").output()?),
            Self::Go => page::entries(&languages::with_go(reader("go run", "names.go", "sdk/go")).output()?),
            Self::C => {
                let mut entries = Vec::new();
                for header in HEADERS {
                    let path = root().join("sdk/c").join(header);
                    let text =
                        fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
                    entries.extend(c::read(header, &text)?);
                }
                Ok(entries)
            }
        }
    }
}

/// Writes all pages, or compares them.
pub(crate) fn run(only_check: bool) -> Result<()> {
    if only_check { check(&Sdk::ALL) } else { each(&Sdk::ALL, write) }
}

/// Compares the pages of these SDKs with the sources.
pub(crate) fn check(sdks: &[Sdk]) -> Result<()> {
    each(sdks, compare)
}

fn each(sdks: &[Sdk], act: fn(&Page, &str) -> Result<()>) -> Result<()> {
    for sdk in sdks {
        let page = sdk.page();
        let entries = sdk.read().with_context(|| format!("could not read the names of {}", page.folder))?;
        let findings = page.findings(&entries);
        if !findings.is_empty() {
            bail!("{}:\n  {}", page.folder, findings.join("\n  "));
        }
        act(&page, &page.render(&entries))?;
    }
    Ok(())
}

fn write(page: &Page, text: &str) -> Result<()> {
    let path = root().join(page.path());
    fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))?;
    console::line(&format!("wrote {}", page.path()));
    Ok(())
}

fn compare(page: &Page, text: &str) -> Result<()> {
    let path = root().join(page.path());
    let there = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    if let Some(number) = page::difference(&there, text) {
        bail!(
            "{}:{number} differs from the sources in {}; run `cargo xtask sdk-docs` and commit the page",
            page.path(),
            page.folder
        );
    }
    console::aside(&format!("{} has every public name of {}", page.path(), page.folder));
    Ok(())
}
