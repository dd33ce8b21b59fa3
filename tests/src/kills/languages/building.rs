//! Builds the plugin of `tests/languages/durable` in each language, as an author builds it.

use std::fs;
use std::path::Path;

use crate::dev::{change, done, root};
use crate::effects::Server;
use crate::host::{Host, Setup};

/// A language of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    Go,
    C,
}

/// The plugin of a language.
pub struct Worker {
    pub language: Language,
    pub component: Vec<u8>,
}

impl Language {
    pub const ALL: [Self; 6] = [Self::Rust, Self::Python, Self::JavaScript, Self::TypeScript, Self::Go, Self::C];

    /// Its name for `toolgate new`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::TypeScript => "ts",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// Whether its plugins can send requests. QuickJS cannot.
    #[must_use]
    pub const fn has_http(self) -> bool {
        !matches!(self, Self::JavaScript)
    }

    /// Whether its plugin sends requests at once: with promises, or with goroutines.
    #[must_use]
    pub const fn is_concurrent(self) -> bool {
        matches!(self, Self::TypeScript | Self::Go)
    }

    /// The source of its plugin, and the file of the template that it replaces.
    const fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::Rust => ("lib.rs", "src/lib.rs"),
            Self::Python => ("plugin.py", "plugin.py"),
            Self::JavaScript => ("plugin.js", "plugin.js"),
            Self::TypeScript => ("plugin.ts", "plugin.ts"),
            Self::Go => ("plugin.go", "plugin.go"),
            Self::C => ("plugin.c", "plugin.c"),
        }
    }
}

impl Worker {
    /// Builds the plugin of a language, which sends its requests to this server.
    ///
    /// # Panics
    /// When it does not build.
    #[must_use]
    pub fn build(language: Language, server: &Server) -> Self {
        let author = Setup::default().prepare();
        done(&author, &["new", "worker", "--lang", language.name(), "--durable"]);
        Self::rebuild(language, &author, "worker", server)
    }

    /// The same with the folder of a durable plugin of this language, in a host's folder.
    ///
    /// # Panics
    /// When it does not build.
    #[must_use]
    pub fn rebuild(language: Language, author: &Host, name: &str, server: &Server) -> Self {
        let folder = author.folder().join(name);
        let (source, replaced) = language.source();
        let sources = root().join("tests/languages/durable");
        fs::copy(sources.join(source), folder.join(replaced)).expect("the source can be copied");
        fs::write(folder.join("toolgate-plugin.toml"), wants(language, server)).expect("the manifest can be written");
        if language == Language::Rust {
            with_rust(&folder);
        }
        done(author, &["build", name]);
        let component = fs::read(folder.join("build").join(format!("{name}.wasm"))).expect("a component");
        Self { language, component }
    }
}

/// The SDK with the capabilities. With the versions of the example plugins, cargo needs no registry.
fn with_rust(folder: &Path) {
    fs::copy(root().join("plugins/Cargo.lock"), folder.join("Cargo.lock")).expect("the versions can be copied");
    let features = "toolgate-sdk = { features = [\"http\", \"keyvalue\"], path";
    change(&folder.join("Cargo.toml"), ("toolgate-sdk = { path", features));
}

/// The manifest: what the plugin requests.
fn wants(language: Language, server: &Server) -> String {
    let name = language.name();
    let others = format!(
        "[wants.keyvalue]\nwhy = \"counts\"\n[[wants.calls]]\ntool = \"work_{name}\"\nwhy = \"calls itself\"\n"
    );
    if !language.has_http() {
        return others;
    }
    let url = server.url("/");
    format!(
        "{others}[[wants.http]]\nurl = \"{url}\"\nmethods = [\"GET\", \"POST\"]\nwhy = \"sends requests in each round\"\n"
    )
}
