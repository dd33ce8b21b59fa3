//! The requirements for a component, one row each.

/// Makes the requirements from rows: the variant, its name, and its text, in the order of a report.
macro_rules! requirements {
    ($($variant:ident = $name:literal: $text:literal,)*) => {
        /// A requirement. The names are stable, because documents and tests refer to them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Requirement {
            $(#[doc = $text] $variant,)*
        }

        impl Requirement {
            /// Every requirement with its name and its text, in the order of a report.
            pub const ALL: [(Self, &'static str, &'static str); [$($name),*].len()] =
                [$((Self::$variant, $name, $text),)*];
        }
    };
}

requirements! {
    Loads = "loads": "a host accepts the component",
    Interface = "interface": "it was built against an interface version that this host supports",
    Imports = "imports": "it imports only what it may use",
    Declares = "declares": "its declarations follow the rules",
    Schemas = "schemas": "its schemas are valid, bounded and complete in themselves",
    Packed = "packed": "the declaration in its section equals the one from its code",
    Constant = "constant": "its code returns the same declaration each time",
    Size = "size": "it is not much larger than others of its toolchain",
    Start = "start": "it starts about as fast as others of its toolchain",
    Memory = "memory": "it leaves room within the memory limit",
    Time = "time": "its calls end soon enough to test all requirements",
    Answers = "answers": "every server tool returns a result or a failure",
    Results = "results": "results are JSON and fit the declared schema",
    Examples = "examples": "the author's examples have the expected results",
    Failures = "failures": "a failure states what was wrong",
    InvalidArguments = "invalid-arguments": "arguments that break the schema cause no trap, and a failure states why",
    UnknownTool = "unknown-tool": "a call of an unknown tool causes a failure, not a trap",
    Progress = "progress": "only streaming tools report progress, each update has a message, and fractions do not decrease",
    Stop = "stop": "a call stops early when it is asked to",
    Unicode = "unicode": "its tools accept characters of every kind",
    Empty = "empty": "its tools accept empty texts and lists",
    Largest = "largest": "its tools accept the largest arguments that the schema allows",
    Numbers = "numbers": "its tools accept extreme numbers",
    Determinism = "determinism": "the same call returns the same result",
    Idempotency = "idempotency": "a second attempt of an idempotent tool changes nothing",
}

impl Requirement {
    /// Why the requirement is not tested, although a tool answered.
    pub(crate) const fn untested(self) -> Option<&'static str> {
        Some(match self {
            Self::Results => "no call gave a result",
            Self::Examples => "there are no examples of its tools",
            Self::Failures => "no call failed",
            Self::InvalidArguments => "its schemas accept everything that the kit tried",
            Self::Progress | Self::Stop => "no tool streams",
            Self::Unicode => {
                "no call has a text that the schema lets the kit replace; without an example, a call has only required members"
            }
            Self::Empty => {
                "no call has a text or a list that may be empty; without an example, a call has only required members"
            }
            Self::Largest => {
                "no call has a text that may be longer; without an example, a call has only required members"
            }
            Self::Numbers => {
                "no call has a number that the schema lets the kit replace; without an example, a call has only required members"
            }
            Self::Idempotency => "no tool with the hint `idempotent` gave a result",
            _ => return None,
        })
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// The requirement as a clause.
    #[must_use]
    pub fn asks(self) -> &'static str {
        self.row().2
    }

    /// The requirement of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    fn row(self) -> &'static (Self, &'static str, &'static str) {
        &Self::ALL[self as usize]
    }
}
