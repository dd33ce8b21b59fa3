//! The pages of the example plugins, `plugins/NAME/README.md`. Their commands do not compile: they get the components that were
//! built for the tests.

use super::how_to::HOST;
use super::{Page, StandIns};

/// The function that replaces `toolgate build`.
const BUILT: &str = include_str!("plugins.sh");

const BUILD: (&str, &str) = ("toolgate build", "built");

const WAITING: (&str, &str) = ("susp_…", "$(waiting)");

/// The page of a plugin in Rust.
fn page(name: &str, stand_ins: StandIns) -> Page {
    let before = format!("{HOST}{BUILT}mkdir plugins/{name}");
    Page { name: format!("plugins/{name}/README.md"), before, stand_ins, ..Page::default() }
}

/// The page of a plugin in another language. CI runs the native tests.
fn foreign(name: &str, stand_ins: StandIns) -> Page {
    Page { builds: true, ..page(name, stand_ins) }
}

macro_rules! plugins {
    ($($test:ident: $page:ident($name:literal, $stand_ins:expr);)*) => {
        $(#[test]
        fn $test() {
            $page($name, &$stand_ins).follow();
        })*

        /// The pages that are followed.
        pub(super) const FOLLOWED: &[&str] = &[$(concat!("plugins/", $name, "/README.md")),*];
    };
}

plugins! {
    agent: page("agent", [BUILD, WAITING]);
    ask: page("ask", [BUILD, WAITING]);
    browser: page("browser", [BUILD, WAITING]);
    // A terminal shows progress and errors too.
    crunch: page("crunch", [BUILD, ("\"starts\":2}'", "\"starts\":2}' 2>&1")]);
    dates: foreign("dates", [BUILD, ("npm install && npm test", ":")]);
    differ: foreign("differ", [BUILD, ("go test", ":")]);
    hasher: foreign("hasher", [BUILD, ("make test", ":")]);
    lab: page("lab", [BUILD, ("lab.wasm spin", "lab.wasm spin 2>&1 || test $? = 1")]);
    ledger: page("ledger", [BUILD]);
    limits: page("limits", [
        BUILD,
        ("(cd plugins && cargo build --release --target wasm32-wasip2 -p limits)", ":"),
        ("http://127.0.0.1:7420", "$(cat toolgate-data/address)"),
    ]);
    reshape: foreign("reshape", [BUILD, ("npm install && npm test", ":")]);
    rollout: page("rollout", [BUILD, WAITING]);
    rollout_py: foreign("rollout-py", [BUILD, ("python3 -m unittest", ":")]);
    rollout_ts: foreign("rollout-ts", [BUILD, ("npm install && npm test", ":")]);
    stats: foreign("stats", [BUILD, ("python3 -m unittest", ":")]);
    textkit: page("textkit", [BUILD]);
    websearch: page("websearch", [BUILD]);
}
