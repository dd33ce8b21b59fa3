//! The requirements for a component, one row each.

/// A requirement. The names are stable, because documents and tests refer to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requirement {
    /// A host accepts the bytes as a component.
    Loads,
    /// It was built against a known version of the interface.
    Interface,
    /// It imports only interfaces that every plugin has or that are granted.
    Imports,
    /// Its declarations follow the rules.
    Declares,
    /// Its schemas are valid, bounded, and refer only to themselves.
    Schemas,
    /// The declaration in its section equals the one from its code.
    Packed,
    /// Its code returns the same declaration each time.
    Constant,
    /// It is not much larger than others of its toolchain.
    Size,
    /// It starts about as fast as others of its toolchain.
    Start,
    /// It leaves room within the memory limit.
    Memory,
    /// Its calls end soon enough to test all requirements.
    Time,
    /// Every server tool returns a result or a failure.
    Answers,
    /// Results are JSON and fit the declared schema.
    Results,
    /// The author's examples have the expected results.
    Examples,
    /// A failure has a message.
    Failures,
    /// Arguments that break the schema cause a failure, not a trap.
    InvalidArguments,
    /// A call of an unknown tool causes a failure, not a trap.
    UnknownTool,
    /// Only streaming tools report progress. Each update has a message, and fractions do not decrease.
    Progress,
    /// A call stops early when it is asked to.
    Stop,
    /// Its tools accept characters of every kind.
    Unicode,
    /// Its tools accept empty texts and lists.
    Empty,
    /// Its tools accept the largest arguments that the schema allows.
    Largest,
    /// Its tools accept extreme numbers.
    Numbers,
    /// The same call returns the same result.
    Determinism,
    /// A second attempt of an idempotent tool changes nothing.
    Idempotency,
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
            Self::Unicode => "no call has a text that the schema lets the kit replace",
            Self::Empty => "no call has a text or a list that may be empty",
            Self::Largest => "no call has a text that may be longer",
            Self::Numbers => "no call has a number that the schema lets the kit replace",
            Self::Idempotency => "no tool with the hint `idempotent` gave a result",
            _ => return None,
        })
    }

    /// Every requirement with its name and its text, in the order of a report.
    pub const ALL: [(Self, &'static str, &'static str); 25] = [
        (Self::Loads, "loads", "a host accepts the component"),
        (Self::Interface, "interface", "it was built against an interface version that this host supports"),
        (Self::Imports, "imports", "it imports only what it may use"),
        (Self::Declares, "declares", "its declarations follow the rules"),
        (Self::Schemas, "schemas", "its schemas are valid, bounded and complete in themselves"),
        (Self::Packed, "packed", "the declaration in its section equals the one from its code"),
        (Self::Constant, "constant", "its code returns the same declaration each time"),
        (Self::Size, "size", "it is not much larger than others of its toolchain"),
        (Self::Start, "start", "it starts about as fast as others of its toolchain"),
        (Self::Memory, "memory", "it leaves room within the memory limit"),
        (Self::Time, "time", "its calls end soon enough to test all requirements"),
        (Self::Answers, "answers", "every server tool returns a result or a failure"),
        (Self::Results, "results", "results are JSON and fit the declared schema"),
        (Self::Examples, "examples", "the author's examples have the expected results"),
        (Self::Failures, "failures", "a failure states what was wrong"),
        (
            Self::InvalidArguments,
            "invalid-arguments",
            "arguments that break the schema cause no trap, and a failure states why",
        ),
        (Self::UnknownTool, "unknown-tool", "a call of an unknown tool causes a failure, not a trap"),
        (
            Self::Progress,
            "progress",
            "only streaming tools report progress, each update has a message, and fractions do not decrease",
        ),
        (Self::Stop, "stop", "a call stops early when it is asked to"),
        (Self::Unicode, "unicode", "its tools accept characters of every kind"),
        (Self::Empty, "empty", "its tools accept empty texts and lists"),
        (Self::Largest, "largest", "its tools accept the largest arguments that the schema allows"),
        (Self::Numbers, "numbers", "its tools accept extreme numbers"),
        (Self::Determinism, "determinism", "the same call returns the same result"),
        (Self::Idempotency, "idempotency", "a second attempt of an idempotent tool changes nothing"),
    ];

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
        Self::ALL.iter().find(|row| row.0 == self).unwrap_or(&Self::ALL[0])
    }
}
