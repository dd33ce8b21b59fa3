//! The toolchain of a component, as the `producers` sections of its modules state it, and its usual costs.

use std::fmt;
use std::time::Duration;

use wasmparser::{KnownCustom, Parser, Payload};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolchain {
    /// Rust, to wasm32-wasip2.
    Rust,
    /// C or C++, by clang or zig.
    C,
    Go,
    /// Python, by componentize-py.
    Python,
    /// JavaScript in the engine StarlingMonkey.
    StarlingMonkey,
    /// JavaScript in the engine QuickJS.
    QuickJs,
    /// Not stated, or another toolchain.
    Unknown,
}

/// The most that a healthy component of a toolchain needs: several times the needs of a small one.
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
                    *found = found.or(value.name);
                }
            }
        }
        // Modules inside may have another origin, such as the adapter for WASI preview 1, which is Rust.
        if outside == Self::Unknown { inside } else { outside }
    }

    /// Prefers the interpreter's toolchain over the compiler that built the interpreter.
    fn or(self, name: &str) -> Self {
        let named = match name {
            // componentize-py leaves only this first entry, not its own name.
            "componentize-py" | "component-init-transform" | "Python" => Self::Python,
            "ComponentizeJS" | "JavaScript" => Self::StarlingMonkey,
            "componentize-qjs" => Self::QuickJs,
            "Go" => Self::Go,
            "Rust" | "rustc" | "wit-bindgen-rust" => Self::Rust,
            "C11" | "C" | "C_plus_plus_14" | "clang" => Self::C,
            _ => Self::Unknown,
        };
        if named.rank() > self.rank() { named } else { self }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::C => 1,
            Self::Rust => 2,
            Self::Go => 3,
            Self::StarlingMonkey => 4,
            Self::QuickJs => 5,
            Self::Python => 6,
        }
    }

    /// How an author makes a component reserve less memory at its start.
    pub(crate) const fn to_reserve_less(self) -> &'static str {
        match self {
            Self::C | Self::Unknown => {
                "reserve less at the start, because memory grows when it is needed. zig reserves a stack of 16 MiB: link with \
                 `-Wl,-z,stack-size=262144` (`zig cc`, clang) or `--stack 262144` (`zig build-exe`)"
            }
            Self::Rust => {
                "reserve less at the start, because memory grows when it is needed: large statics, and the flag \
                 `-C link-arg=-zstack-size=…`, are reserved"
            }
            Self::Go | Self::Python | Self::StarlingMonkey | Self::QuickJs => {
                "do less when the module is loaded: its memory is part of every call"
            }
        }
    }

    /// Measured on small plugins (docs/performance.md), with a generous margin.
    pub(crate) const fn usual(self) -> Usual {
        let (size, start, memory) = match self {
            Self::Rust | Self::C | Self::Unknown => (8, 50, 16),
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
            Self::Go => "Go",
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

    /// A `producers` section with these names.
    fn producers(names: &[&str]) -> Vec<u8> {
        let values: Vec<u8> = names.iter().flat_map(|name| [text(name), text("1")].concat()).collect();
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
            (&["C", "zig"], &["rustc"], Toolchain::C),
            (&["JavaScript", "esbuild", "componentize-qjs"], &["rustc"], Toolchain::QuickJs),
            (&["ComponentizeJS", "JavaScript"], &["clang", "rustc"], Toolchain::StarlingMonkey),
            (&["wit-component"], &["Go", "rustc"], Toolchain::Go),
            (&["component-init-transform"], &["rustc"], Toolchain::Python),
        ] {
            assert_eq!(made(outside, inside), expected, "{outside:?}, {inside:?}");
        }
    }
}
