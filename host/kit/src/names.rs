//! Names that a new plugin cannot have, because they have another meaning in its language or its tools.

use crate::{Failed, Language};

/// Taken in every language: by toolgate, by outputs of builds, by tools and by file systems.
const EVERYWHERE: &str = "\
    aux build con main node_modules nul prn target test toolgate toolgate-sdk toolgate_sdk vendor";

const RUST_KEYWORDS: &str = "\
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen \
    if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait \
    true try type typeof unsafe unsized use virtual where while yield";

/// Crates of the compiler, folders of cargo, and the dependencies of every plugin: a package cannot depend on itself.
const RUST_CRATES: &str = "\
    alloc core deps examples incremental proc-macro proc_macro schemars serde serde-json serde_json std test \
    toolgate-sdk toolgate_sdk wit-bindgen wit_bindgen";

const PYTHON_KEYWORDS: &str = "\
    and as assert async await break class continue def del elif else except false finally for from global if \
    import in is lambda none nonlocal not or pass raise return true try while with yield";

/// From `sys.stdlib_module_names`. Python would import a folder of this name instead.
const PYTHON_MODULES: &str = "\
    abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 \
    bdb binascii bisect builtins bz2 calendar cgi cgitb chunk cmath cmd code codecs codeop collections \
    colorsys compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv \
    ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip \
    enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt \
    getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib \
    inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap \
    marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath \
    nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil \
    platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc \
    pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets \
    select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 \
    sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau \
    symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time \
    timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing \
    unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib \
    xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

const JS_KEYWORDS: &str = "\
    await break case catch class const continue debugger default delete do else enum export extends false \
    finally for function if implements import in instanceof interface let new null package private protected \
    public return static super switch this throw true try typeof var void while with yield";

/// Modules of Node.js, which npm refuses as names of packages.
const NODE_MODULES: &str = "\
    assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns \
    domain events fs http http2 https inspector module net os path perf_hooks process punycode querystring \
    readline repl sea sqlite stream string_decoder sys test timers tls trace_events tty url util v8 vm wasi \
    worker_threads zlib";

const GO_KEYWORDS: &str = "\
    break case chan const continue default defer else fallthrough for func go goto if import interface map \
    package range return select struct switch type var";

/// Packages of the standard library, whose import paths would clash with the module's.
const GO_PACKAGES: &str = "\
    archive arena bufio builtin bytes cmp compress container context crypto database debug embed encoding \
    errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin \
    reflect regexp runtime slices sort strconv strings structs sync syscall testing text time unicode unique \
    unsafe uuid vendor weak";

/// Words that the commands of Go read as patterns of packages.
const GO_PATTERNS: &str = "all cmd std tool work";

const C_KEYWORDS: &str = "\
    alignas alignof auto bool break case char const constexpr continue default do double else enum extern false \
    float for goto if inline int long nullptr register restrict return short signed sizeof static struct switch \
    thread_local true typedef typeof typeof_unqual union unsigned void volatile while";

/// The meaning of a list for the message, and its names.
type Taken = (&'static str, &'static str);

fn taken(language: Language) -> &'static [Taken] {
    match language {
        Language::Rust => {
            &[("a keyword of Rust", RUST_KEYWORDS), ("the name of a crate that it is built with", RUST_CRATES)]
        }
        Language::Python => {
            &[("a keyword of Python", PYTHON_KEYWORDS), ("a module of Python's standard library", PYTHON_MODULES)]
        }
        Language::JavaScript | Language::TypeScript => {
            &[("a keyword of JavaScript", JS_KEYWORDS), ("a module of Node.js", NODE_MODULES)]
        }
        Language::Go => &[
            ("a keyword of Go", GO_KEYWORDS),
            ("a package of Go's standard library", GO_PACKAGES),
            ("a word that Go reads as a pattern of packages", GO_PATTERNS),
        ],
        Language::C => &[("a keyword of C", C_KEYWORDS)],
    }
}

/// Checks that packages, crates and tools can have this name.
///
/// # Errors
/// When a plugin in this language cannot have this name.
pub(crate) fn check(language: Language, name: &str) -> Result<(), Failed> {
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    let rest = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'));
    // The template's tool is called NAME_count, and the name of a tool has at most 64 characters.
    if !begins || !rest || name.len() > 50 {
        return Err(Failed::project(
            format!("{name:?} cannot be the name of a plugin"),
            "a name has 1 to 50 of the characters a-z 0-9 _ - and begins with a letter",
        ));
    }
    let everywhere = ("a name that toolgate or a tool of the languages uses itself", EVERYWHERE);
    let mut lists = std::iter::once(&everywhere).chain(taken(language));
    let Some((what, _)) = lists.find(|(_, names)| names.split_whitespace().any(|taken| taken == name)) else {
        return Ok(());
    };
    let hint = format!("choose another one, such as {name}-tools");
    Err(Failed::project(format!("{name:?} cannot be the name of a plugin: it is {what}"), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_packages_in_every_language() {
        for language in Language::ALL {
            for name in ["a", "hello", "a-b_9", "serde-tools", &"x".repeat(50)] {
                check(language, name).unwrap();
            }
            for name in ["", "A", "9a", "-a", "a.b", "../a", "a/b", "é", "test", "toolgate", "con", &"x".repeat(51)] {
                check(language, name).unwrap_err();
            }
        }
    }

    #[test]
    fn name_with_another_meaning_is_refused_with_the_reason() {
        for (language, name, what) in [
            (Language::Rust, "serde", "the name of a crate that it is built with"),
            (Language::Rust, "std", "the name of a crate that it is built with"),
            (Language::Rust, "match", "a keyword of Rust"),
            (Language::Python, "json", "a module of Python's standard library"),
            (Language::Python, "lambda", "a keyword of Python"),
            (Language::JavaScript, "fs", "a module of Node.js"),
            (Language::TypeScript, "function", "a keyword of JavaScript"),
            (Language::Go, "fmt", "a package of Go's standard library"),
            (Language::Go, "uuid", "a package of Go's standard library"),
            (Language::Go, "chan", "a keyword of Go"),
            (Language::Go, "work", "a word that Go reads as a pattern of packages"),
            (Language::Go, "all", "a word that Go reads as a pattern of packages"),
            (Language::C, "while", "a keyword of C"),
            (Language::C, "test", "a name that toolgate or a tool of the languages uses itself"),
        ] {
            let error = check(language, name).unwrap_err();
            assert_eq!(error.to_string(), format!("{name:?} cannot be the name of a plugin: it is {what}"));
            assert_eq!(error.hint().unwrap(), format!("choose another one, such as {name}-tools"));
        }
        // A name can be taken in one language and free in another.
        check(Language::Go, "serde").unwrap();
        check(Language::Rust, "fmt").unwrap();
        check(Language::C, "json").unwrap();
        check(Language::Rust, "work").unwrap();
    }
}
