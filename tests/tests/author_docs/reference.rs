//! Pages of reference. A host accepts their configurations. Their commands are not run.

use std::fs;

use super::{Block, Page, blocks, pages, root};

/// The pages that have commands, and why these are not run.
const NOT_RUN: [(&str, &str); 7] = [
    ("docs/conformance.md", "the tests of `toolgate conform` run them"),
    ("plugins/forge/README.md", "they call a forge on the internet"),
    ("plugins/limits/README.md", "CI builds the plugin, and the tests of policies ask it"),
    ("sdk/c/README.md", "docs/write-tools/c.md has them, without Debian's compiler"),
    ("sdk/go/README.md", "docs/write-tools/go.md has them"),
    ("sdk/rust/README.md", "docs/write-tools/rust.md has them"),
    ("sdk/web/README.md", "CI runs them"),
];

#[test]
fn configurations_of_reference_pages_are_accepted() {
    let capabilities = pages("capabilities").into_iter().map(|name| format!("docs/capabilities/{name}"));
    let sdks = ["c", "go", "js", "python", "rust", "web"].map(|sdk| format!("sdk/{sdk}/README.md"));
    let others = ["docs/limits.md", "docs/conformance.md", "plugins/forge/README.md", "plugins/limits/README.md"];
    for name in capabilities.chain(sdks).chain(others.map(str::to_owned)) {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        let has_commands = blocks(&text).iter().any(|block| matches!(block, Block::Run(_) | Block::Stopped(_)));
        assert_eq!(has_commands, NOT_RUN.iter().any(|(page, _)| *page == name), "{name}");
        let stand_ins: &[_] = match name.as_str() {
            "docs/capabilities/filesystem.md" => {
                &[("sha256:7d0c…", "sha256:$(printf %064d 0)"), ("/srv/reports", "reports")]
            }
            "plugins/limits/README.md" => {
                &[("plugins/target/wasm32-wasip2", "$REPOSITORY/plugins/target/wasm32-wasip2")]
            }
            _ if text.contains("sha256:7d0c…") => &[("sha256:7d0c…", "sha256:$(printf %064d 0)")],
            _ => &[],
        };
        Page { name, before: "mkdir reports".to_owned(), stand_ins, is_reference: true, ..Page::default() }.follow();
    }
}
