//! The toolchain of a component, as the `producers` sections of its modules state it, and its usual costs.

use std::fmt;
use std::time::Duration;

use wasmparser::{KnownCustom, Parser, Payload};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolchain {
    /// Rust, by cargo.
    Rust,
    /// C or C++. The component does not say which clang compiled it.
    C,
    /// C or C++, by wasi-sdk.
    WasiSdk,
    /// C, C++ or Zig, by zig.
    Zig,
    Go,
    TinyGo,
    /// Python, by componentize-py.
    Python,
    /// JavaScript in the engine StarlingMonkey, by componentize-js or jco, which calls it.
    StarlingMonkey,
    /// JavaScript in the engine QuickJS, by componentize-qjs.
    QuickJs,
    /// Not stated, or another toolchain.
    Unknown,
}

/// The maximum needs of a healthy component of a toolchain: several times the needs of a small one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usual {
    /// The bytes of the component.
    pub(crate) size: usize,
    /// The time from the start of a call to its tool.
    pub(crate) start: Duration,
    /// The bytes of linear memory of a small call.
    pub(crate) memory: usize,
}

impl Toolchain {
    /// Reads the toolchain from the component's sections.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let (mut outside, mut inside, mut depth) = (Self::Unknown, Self::Unknown, 0_u32);
        for payload in Parser::new(0).parse_all(bytes) {
            let section = match payload {
                Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => {
                    depth += 1;
                    continue;
                }
                Ok(Payload::End(_)) => {
                    depth = depth.saturating_sub(1);
                    continue;
                }
                Ok(Payload::CustomSection(section)) => section,
                _ => continue,
            };
            let KnownCustom::Producers(fields) = section.as_known() else { continue };
            let found = if depth == 0 { &mut outside } else { &mut inside };
            for field in fields.into_iter().flatten() {
                for value in field.values.into_iter().flatten() {
                    *found = found.or(value.name, value.version);
                }
            }
        }
        // Modules inside may have another origin, such as the adapter for WASI preview 1, which is Rust.
        if outside == Self::Unknown { inside } else { outside }
    }

    /// Prefers the interpreter's toolchain over the compiler that built the interpreter.
    fn or(self, name: &str, version: &str) -> Self {
        let named = match name {
            // componentize-py leaves only this first entry, not its own name.
            "componentize-py" | "component-init-transform" | "Python" => Self::Python,
            "ComponentizeJS" | "JavaScript" => Self::StarlingMonkey,
            "componentize-qjs" => Self::QuickJs,
            "TinyGo" => Self::TinyGo,
            "Go" => Self::Go,
            "Rust" | "rustc" | "wit-bindgen-rust" => Self::Rust,
            "zig" | "Zig" => Self::Zig,
            // The clang of zig and of wasi-sdk say so in their versions only.
            "clang" if version.contains("zig") => Self::Zig,
            "clang" if version.contains("wasi-sdk") => Self::WasiSdk,
            "C11" | "C" | "C_plus_plus_14" | "clang" => Self::C,
            _ => Self::Unknown,
        };
        if named.rank() > self.rank() { named } else { self }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::C => 1,
            Self::WasiSdk => 2,
            Self::Zig => 3,
            Self::Rust => 4,
            Self::Go => 5,
            Self::TinyGo => 6,
            Self::StarlingMonkey => 7,
            Self::QuickJs => 8,
            Self::Python => 9,
        }
    }

    /// How an author makes a component reserve less memory at its start.
    pub(crate) const fn to_reserve_less(self) -> &'static str {
        match self {
            Self::Zig => {
                "reserve less at the start, because memory grows when it is needed. zig reserves a stack of 16 MiB: link with \
                 `-Wl,-z,stack-size=262144` (`zig cc`) or `--stack 262144` (`zig build-exe`)"
            }
            Self::C | Self::WasiSdk => {
                "reserve less at the start, because memory grows when it is needed: large static data, `-Wl,-z,stack-size=…` and \
                 `-Wl,--initial-memory=…` are reserved"
            }
            Self::Unknown => {
                "reserve less at the start, because memory grows when it is needed: large static data and a large stack are \
                 reserved (`-z stack-size=262144` for the linker; zig's default is 16 MiB)"
            }
            Self::Rust => {
                "reserve less at the start, because memory grows when it is needed: large statics, and the flag \
                 `-C link-arg=-zstack-size=…`, are reserved"
            }
            Self::TinyGo => {
                "do less in `init` and in variables of packages, whose memory is part of every call, and choose a smaller \
                 `tinygo build -stack-size=…`"
            }
            Self::Go | Self::Python | Self::StarlingMonkey | Self::QuickJs => {
                "do less when the module is loaded: its memory is part of every call"
            }
        }
    }

    /// How an author makes a component smaller.
    pub(crate) const fn to_be_smaller(self) -> &'static str {
        match self {
            Self::Rust => {
                "leave out what no tool needs, and build with `cargo build --release` and, in `[profile.release]` of Cargo.toml, \
                 `opt-level = \"s\"`, `lto = true`, `panic = \"abort\"` and `strip = true`"
            }
            Self::Zig => {
                "leave out what no tool needs, and build with `zig cc -Os -flto -s` or `zig build-exe -O ReleaseSmall`"
            }
            Self::C | Self::WasiSdk => "leave out what no tool needs, and build with `clang -Os -flto -Wl,--strip-all`",
            Self::Go => "import fewer packages, and build with `go build -ldflags=\"-s -w\"`",
            Self::TinyGo => "import fewer packages, and build with `tinygo build -opt=z -no-debug`",
            Self::Python => {
                "componentize-py takes in every module that is imported: import fewer, and only small packages"
            }
            Self::StarlingMonkey => {
                "bundle and minify the source before `componentize-js` or `jco componentize`, and import fewer packages"
            }
            Self::QuickJs => "import fewer packages, and build with `componentize-qjs --minify`",
            Self::Unknown => "build it for release, strip it, and leave out what no tool needs",
        }
    }

    /// The flag that leaves out an import that the toolchain adds by itself.
    pub(crate) fn to_leave_out(self, import: &str) -> Option<&'static str> {
        let http = import.contains("`wasi:http/");
        (self == Self::StarlingMonkey && http).then_some(
            "if no tool sends requests, build it with `--disable http fetch-event` (`componentize-js`, `jco componentize`), \
             because this toolchain imports wasi:http by itself",
        )
    }

    /// Measured on small plugins (docs/performance.md), with a generous margin.
    pub(crate) const fn usual(self) -> Usual {
        let (size, start, memory) = match self {
            Self::Rust | Self::C | Self::WasiSdk | Self::Zig | Self::TinyGo | Self::Unknown => (8, 50, 16),
            Self::Go => (24, 200, 48),
            Self::Python => (64, 500, 96),
            Self::StarlingMonkey => (32, 300, 96),
            Self::QuickJs => (8, 150, 48),
        };
        Usual { size: size << 20, start: Duration::from_millis(start), memory: memory << 20 }
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::C => "C",
            Self::WasiSdk => "C (wasi-sdk)",
            Self::Zig => "C (zig)",
            Self::Go => "Go",
            Self::TinyGo => "Go (TinyGo)",
            Self::Python => "Python (componentize-py)",
            Self::StarlingMonkey => "JavaScript (StarlingMonkey)",
            Self::QuickJs => "JavaScript (QuickJS)",
            Self::Unknown => "an unknown toolchain",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";
    const MODULE: [u8; 8] = *b"\0asm\x01\0\0\0";

    /// A section of less than 128 bytes.
    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        [&[id, u8::try_from(content.len()).unwrap_or(u8::MAX)], content].concat()
    }

    fn text(text: &str) -> Vec<u8> {
        [&[u8::try_from(text.len()).unwrap_or(u8::MAX)], text.as_bytes()].concat()
    }

    /// A `producers` section with these names. A version may follow a name after a space.
    fn producers(names: &[&str]) -> Vec<u8> {
        let parts = names.iter().map(|name| name.split_once(' ').unwrap_or((name, "1")));
        let values: Vec<u8> = parts.flat_map(|(name, version)| [text(name), text(version)].concat()).collect();
        let field = [text("processed-by"), vec![u8::try_from(names.len()).unwrap_or(u8::MAX)], values].concat();
        section(0, &[text("producers"), vec![1], field].concat())
    }

    #[test]
    fn the_components_own_toolchain_wins_over_its_parts() {
        let made = |outside: &[&str], inside: &[&str]| {
            let module = section(1, &[MODULE.to_vec(), producers(inside)].concat());
            Toolchain::of(&[COMPONENT.to_vec(), module, producers(outside)].concat())
        };
        for (outside, inside, expected) in [
            (&[][..], &[][..], Toolchain::Unknown),
            (&["wit-component"], &["rustc", "wit-component"], Toolchain::Rust),
            (&["wit-component"], &["wit-bindgen-rust"], Toolchain::Rust),
            (&["C", "zig"], &["rustc"], Toolchain::Zig),
            (&["wit-component"], &["C11", "clang 21.1.0 (of zig-bootstrap)"], Toolchain::Zig),
            (&["wit-component"], &["C11", "clang 19.1.5-wasi-sdk (of llvm)"], Toolchain::WasiSdk),
            (&["wit-component"], &["C11", "clang 16.0.6"], Toolchain::C),
            (&["wit-component"], &["C11", "TinyGo 0.39.0"], Toolchain::TinyGo),
            (&["JavaScript", "esbuild", "componentize-qjs"], &["rustc"], Toolchain::QuickJs),
            (&["ComponentizeJS", "JavaScript"], &["clang", "rustc"], Toolchain::StarlingMonkey),
            (&["wit-component"], &["Go", "rustc"], Toolchain::Go),
            (&["component-init-transform"], &["rustc"], Toolchain::Python),
        ] {
            assert_eq!(made(outside, inside), expected, "{outside:?}, {inside:?}");
        }
    }

    #[test]
    fn remedies_name_the_flags_of_the_toolchain() {
        for (toolchain, memory, size) in [
            (Toolchain::Zig, "--stack 262144", "ReleaseSmall"),
            (Toolchain::WasiSdk, "-Wl,-z,stack-size", "--strip-all"),
            (Toolchain::Rust, "-zstack-size", "cargo build --release"),
            (Toolchain::TinyGo, "-stack-size", "tinygo build -opt=z"),
            (Toolchain::Go, "loaded", "-ldflags"),
            (Toolchain::QuickJs, "loaded", "componentize-qjs --minify"),
            (Toolchain::StarlingMonkey, "loaded", "jco componentize"),
            (Toolchain::Python, "loaded", "componentize-py"),
        ] {
            assert!(toolchain.to_reserve_less().contains(memory), "{toolchain}");
            assert!(toolchain.to_be_smaller().contains(size), "{toolchain}");
        }
        let (http, sockets) = ("imports `wasi:http/types@0.2.3`", "imports `wasi:sockets/tcp@0.2.3`");
        let flag = Toolchain::StarlingMonkey.to_leave_out(http).expect("a flag");
        assert!(flag.contains("--disable http fetch-event"));
        assert_eq!(Toolchain::StarlingMonkey.to_leave_out(sockets), None);
        assert_eq!(Toolchain::Rust.to_leave_out(http), None);
    }
}
