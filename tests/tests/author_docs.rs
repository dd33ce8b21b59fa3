//! Runs the commands of the README, of the pages for authors and for users, and of the example plugins, in order, in an empty
//! folder with an empty home.
//!
//! In such a page, one bash runs all blocks ```` ```sh ````. A block with `file=NAME` is written to
//! that file. The lines of a block ```` ```text ```` must occur in this order in the output of the block before it. `…`
//! matches any text. A block ```` ```toml ```` without a file must be a configuration that `toolgate config` accepts, or a manifest
//! that `toolgate pack` accepts. While the commands of a block ```` ```sh stopped ```` run, the host is stopped. The commands of a
//! block ```` ```sh build ```` build toolgate itself, which takes long: they are only compared with what exists. Of pages of
//! reference, only the configurations are checked.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "author_docs/how_to.rs"]
mod how_to;
#[path = "author_docs/plugins.rs"]
mod plugins;
#[path = "author_docs/reference.rs"]
mod reference;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use toolgate_tests::host::binary;
use toolgate_tests::parts::Part;

/// The separator between the outputs of two blocks.
const BETWEEN: &str = "=== the next block ===";

/// The end of a file that a page writes.
const END: &str = "THE_END_OF_THE_FILE";

/// The time limit of a page, so that a host that does not start is a failure.
const SECONDS: &str = "900";

/// Texts of a page, and what bash writes instead.
type StandIns = &'static [(&'static str, &'static str)];

/// A page that is followed.
#[derive(Default)]
struct Page {
    /// Its path from the root.
    name: String,
    /// Commands that its reader has run before.
    before: String,
    /// Texts that differ from reader to reader, such as ids, and what bash writes instead.
    stand_ins: StandIns,
    /// Commands that use what the page has written.
    after: &'static str,
    /// Whether it builds plugins, which needs the registries of their languages, or uses what these have built.
    builds: bool,
    /// Whether only its configurations are checked.
    is_reference: bool,
}

/// A block of a page.
#[derive(Debug, PartialEq, Eq)]
enum Block {
    Run(String),
    Stopped(String),
    Build(String),
    Write { file: String, text: String },
    Configure(String),
    Expect(Vec<String>),
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let file = info.split_whitespace().find_map(|word| word.strip_prefix("file="));
        match (info.split_whitespace().next(), file) {
            (_, Some(file)) => blocks.push(Block::Write { file: file.to_owned(), text: text.join("\n") + "\n" }),
            _ if info == "sh build" => blocks.push(Block::Build(text.join("\n"))),
            _ if info == "sh stopped" => blocks.push(Block::Stopped(text.join("\n"))),
            (Some("toml"), None) => blocks.push(Block::Configure(text.join("\n") + "\n")),
            (Some("sh"), None) => blocks.push(Block::Run(text.join("\n"))),
            (Some("text"), None) => blocks.push(Block::Expect(text.into_iter().map(str::to_owned).collect())),
            _ => {}
        }
    }
    blocks
}

impl Page {
    /// The script of the page. It marks the end of each block's output.
    fn script(&self, blocks: &[Block]) -> String {
        let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
        if !self.before.is_empty() {
            script.push_str(&format!("{{\n{}\n}} > /dev/null\n", self.before));
        }
        for block in blocks {
            match block {
                Block::Run(commands) => {
                    script.push_str(&format!("{}\necho '{BETWEEN}'\n", self.with_stand_ins(commands)));
                }
                Block::Stopped(commands) => {
                    let commands = self.with_stand_ins(commands);
                    script.push_str(&format!("stop\n{commands}\nstart\necho '{BETWEEN}'\n"));
                }
                Block::Write { file, text } => {
                    script.push_str(&self.written(file, text));
                    if file == "toolgate.toml" && !self.before.is_empty() {
                        script.push_str("configured\n");
                    }
                }
                Block::Configure(text) => {
                    script.push_str(&self.written("block.toml", text));
                    let checks = if text.contains("[wants") {
                        "pack plugins/bank.wasm --out packed.wasm --manifest"
                    } else {
                        "config --config"
                    };
                    script.push_str(&format!("toolgate {checks} block.toml > /dev/null\n"));
                }
                Block::Expect(_) | Block::Build(_) => {}
            }
        }
        script + self.after
    }

    fn with_stand_ins(&self, text: &str) -> String {
        self.stand_ins.iter().fold(text.to_owned(), |text, (shown, instead)| text.replace(shown, instead))
    }

    /// A command that writes a file. Bash evaluates only its stand-ins.
    fn written(&self, file: &str, text: &str) -> String {
        let literal =
            ['\\', '$', '`'].iter().fold(text.to_owned(), |text, sign| text.replace(*sign, &format!("\\{sign}")));
        format!("cat > '{file}' << {END}\n{}{END}\n", self.with_stand_ins(&literal))
    }

    /// A line of an expected output. A text with a stand-in can be any text.
    fn expected(&self, line: &str) -> String {
        self.stand_ins.iter().fold(line.to_owned(), |line, (shown, _)| line.replace(shown, "…"))
    }
}

/// Whether a line matches a pattern of the page.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut open = false;
    for part in parts {
        open = part.is_empty();
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    open || rest.is_empty()
}

/// The first line of the page that the output does not contain in order.
fn missing<'a>(expected: &'a [String], output: &str) -> Option<&'a str> {
    let mut lines = output.lines();
    let came = |pattern: &&String| !lines.any(|line| fits(pattern.trim_end(), line.trim_end()));
    expected.iter().filter(|pattern| !pattern.trim().is_empty()).find(came).map(String::as_str)
}

#[expect(clippy::disallowed_methods, reason = "a reader runs the page with the programs of the machine")]
fn machine(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn search_path() -> Vec<PathBuf> {
    machine("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The Go that `toolgate build` installed last, so that a machine without Go also runs the whole page.
fn pinned_go() -> Option<PathBuf> {
    let entries = root().join("target/toolchains/toolchains").read_dir().into_iter().flatten().flatten();
    let found = entries.map(|entry| entry.path()).filter(|path| path.join("site/go/bin/go").is_file());
    let found = found.filter_map(|path| Some((path.join("installed.txt").metadata().ok()?.modified().ok()?, path)));
    found.max().map(|(_, path)| path.join("site/go/bin"))
}

/// Whether a page has only its empty home, as for somebody who follows it on a new machine. `.ci/nightly` sets this.
#[expect(clippy::disallowed_methods, reason = "an input of these tests from outside")]
fn keeps_nothing() -> bool {
    std::env::var_os("TOOLGATE_EMPTY_HOME").is_some()
}

/// The variables that name folders of the developer.
const KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "GOCACHE",
    "GOPATH",
    "TOOLGATE_CACHE",
    "npm_config_cache",
    "npm_config_userconfig",
];

/// Gives the page its own home. Package managers and compilers keep their folders, and their downloads stay between
/// runs.
fn at_home(command: &mut Command, home: &Path) {
    let (theirs, cache) = (PathBuf::from(machine("HOME").unwrap_or_default()), root().join("target/toolchains"));
    command.env("HOME", home).env_remove("XDG_CACHE_HOME").env_remove("XDG_CONFIG_HOME");
    // Readers have Rust: toolgate does not install it.
    command.env("RUSTUP_HOME", machine("RUSTUP_HOME").unwrap_or_else(|| theirs.join(".rustup").into()));
    if keeps_nothing() {
        KEPT.iter().for_each(|name| _ = command.env_remove(name));
        return;
    }
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("npm_config_userconfig", ".npmrc")] {
        command.env(name, machine(name).unwrap_or_else(|| theirs.join(folder).into()));
    }
    command.env("npm_config_cache", cache.join("tools/npm"));
    command.env("GOCACHE", cache.join("tools/go/build")).env("GOTOOLCHAIN", "local").env("GOFLAGS", "-mod=mod");
    command.env("TOOLGATE_CACHE", cache);
}

/// Checks the commands that build toolgate: a task of xtask, or the installation of the package that has the binary.
fn check_build(commands: &str) {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let tasks = read("xtask/src/args.rs");
    for line in commands.lines() {
        let command: Vec<_> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let exists = match command[..] {
            ["cargo", "xtask", task] => tasks.contains(&format!("\n  {task} ")),
            ["cargo", "install", "--path", package, "--locked"] => {
                read(&format!("{package}/Cargo.toml")).contains("[[bin]]\nname = \"toolgate\"")
            }
            _ => false,
        };
        assert!(exists, "{line}");
    }
}

impl Page {
    /// Follows the page.
    fn follow(&self) {
        if self.builds && Part::Languages.is_left_out() {
            return;
        }
        let name = &self.name;
        // Another host may use the default port.
        let page = fs::read_to_string(root().join(name)).unwrap();
        let page = page.replace("\ntoolgate serve > ", "\ntoolgate serve --listen 127.0.0.1:0 > ");
        for (shown, _) in self.stand_ins {
            assert!(page.contains(shown), "{name} has no {shown}");
        }
        let mut blocks = blocks(&page);
        blocks.retain(|block| !self.is_reference || matches!(block, Block::Configure(_)));
        let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        if !self.before.is_empty() {
            how_to::fill(folder.path());
        }
        let output = self.run(&blocks, folder.path(), home.path());
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let log = ["host.log", "hello/host.log", "try/host.log"].map(|log| fs::read_to_string(folder.path().join(log)));
        let log: String = log.into_iter().flatten().collect();
        let outputs: Vec<&str> = out.split(&format!("{BETWEEN}\n")).collect();
        assert!(output.status.success(), "{name}, after {} blocks:\n{out}\n{err}\n{log}", outputs.len() - 1);
        let wrote = home.path().join(".cache/toolgate").exists();
        assert!(keeps_nothing() || !wrote, "{name}: toolgate wrote into the home");
        assert!(!keeps_nothing() || !self.builds || wrote, "{name}: toolgate used another cache");
        if name.ends_with("go.md") {
            // The page writes the version of Go here.
            assert_ne!(
                fs::read_to_string(folder.path().join("hello/tested.txt")).unwrap().trim(),
                "",
                "no Go was found"
            );
        }
        self.compare(&blocks, outputs.into_iter(), &err);
    }

    /// Runs the script of the page.
    fn run(&self, blocks: &[Block], folder: &Path, home: &Path) -> Output {
        let toolgate = binary();
        let path = [toolgate.parent().unwrap().to_owned()].into_iter().chain(pinned_go()).chain(search_path());
        let mut command = Command::new("timeout");
        // Kept between runs, so that dependencies are compiled once.
        command.env("CARGO_TARGET_DIR", root().join("plugins/target/new"));
        at_home(&mut command, home);
        command
            .args(["--kill-after=10", SECONDS, "bash", "-c", &self.script(blocks)])
            .current_dir(folder)
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("NO_COLOR", "1")
            .env("REPOSITORY", root())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Compares the output of each block with the page.
    fn compare<'a>(&self, blocks: &[Block], mut printed: impl Iterator<Item = &'a str>, err: &str) {
        let mut last = "";
        for block in blocks {
            match block {
                Block::Run(_) | Block::Stopped(_) => last = printed.next().unwrap_or_default(),
                Block::Build(commands) => check_build(commands),
                Block::Expect(expected) => {
                    let expected: Vec<_> = expected.iter().map(|line| self.expected(line)).collect();
                    let missing = missing(&expected, last);
                    assert_eq!(missing, None, "{}: this line is missing; the output:\n{last}\n{err}", self.name);
                }
                Block::Write { .. } | Block::Configure(_) => {}
            }
        }
    }
}

/// The names of the pages in a folder of `docs`.
fn pages(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("docs").join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

macro_rules! write_tools {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            Page { name: concat!("docs/write-tools/", $name).to_owned(), builds: true, ..Page::default() }.follow();
        })*

        /// The pages that are followed.
        const WRITE_TOOLS: &[&str] = &[$(concat!("docs/write-tools/", $name)),*];

        #[test]
        fn every_page_is_listed() {
            assert_eq!(pages("write-tools"), BTreeSet::from([$($name.to_owned()),*]));
        }
    };
}

write_tools! {
    c: "c.md",
    go: "go.md",
    javascript: "javascript.md",
    python: "python.md",
    rust: "rust.md",
    typescript: "typescript.md",
}

#[test]
fn readme() {
    let page = Page { name: "README.md".to_owned(), builds: true, ..Page::default() };
    Page { stand_ins: &[("sha256:7d0c…", "sha256:$(printf %064d 0)")], ..page }.follow();
}

/// It makes a plugin without toolgate.
const RUST_SDK: &str = "sdk/rust/README.md";

#[test]
fn rust_sdk() {
    let page = Page { name: RUST_SDK.to_owned(), builds: true, ..Page::default() };
    let stand_ins = &[("…/sdk/rust", "$REPOSITORY/sdk/rust"), ("rustup target add wasm32-wasip2", ":")];
    let after = "component=${CARGO_TARGET_DIR:-target}/wasm32-wasip2/release/words.wasm\n\
                 test \"$(toolgate call \"$component\" '{\"text\":\"to be or not\"}')\" = 4\n";
    Page { stand_ins, after, ..page }.follow();
}

#[test]
fn build_commands_of_a_page_exist() {
    check_build("cargo xtask demo   # what it does\ncargo install --path host/cli --locked");
    for wrong in
        ["cargo xtask dance", "cargo install --path host/kit --locked", "cargo install --path host/cli", "make"]
    {
        assert!(std::panic::catch_unwind(|| check_build(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn patterns_of_the_page_match_lines() {
    assert!(fits("4", "4") && fits("Ran 4 tests in …", "Ran 4 tests in 0.1s") && fits("…a…b", "xa--b"));
    assert!(!fits("4", "42") && !fits("…a", "ab") && !fits("a…", "ba"));
    let expected = ["one".to_owned(), String::new(), "t…".to_owned()];
    assert_eq!(missing(&expected, "zero\none\n\ntwo\n"), None);
    assert_eq!(missing(&expected, "two\none\n"), Some("t…"), "in this order");
}

#[test]
fn stand_ins_replace_what_differs() {
    let page = Page { stand_ins: &[("susp_…", "$(waiting)")], ..Page::default() };
    let script =
        page.script(&[Block::Run("toolgate approve susp_…".into()), Block::Configure("a = \"susp_…\"\n".into())]);
    assert!(script.contains("\ntoolgate approve $(waiting)\n"), "{script}");
    assert!(script.contains(&format!("<< {END}\na = \"$(waiting)\"\n{END}\ntoolgate config --config ")), "{script}");
    assert_eq!(page.expected("approved susp_…"), "approved …");
    let literal = page.script(&[Block::Write { file: "a".into(), text: "`$HOME`\\n\n".into() }]);
    assert!(literal.contains(&format!("<< {END}\n\\`\\$HOME\\`\\\\n\n{END}\n")), "{literal}");
}

#[test]
fn page_is_split_into_blocks() {
    let page = "a\n```sh build\nmake\n```\n```sh\necho 1\n```\n```text\n1\n```\n```toml\na = 1\n```\n```sh stopped\necho 2\n```\n```py file=a/b.py\nx\n```\n```rust\nskipped\n```\n";
    let expected = [
        Block::Build("make".into()),
        Block::Run("echo 1".into()),
        Block::Expect(vec!["1".into()]),
        Block::Configure("a = 1\n".into()),
        Block::Stopped("echo 2".into()),
        Block::Write { file: "a/b.py".into(), text: "x\n".into() },
    ];
    assert_eq!(blocks(page), expected);
}
