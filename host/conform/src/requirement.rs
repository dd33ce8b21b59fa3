//! What is required of a component: one row each.

/// A requirement. The names are stable: documentation and tests refer to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requirement {
    /// The bytes are a component that a host takes.
    Loads,
    /// It is written against a version of the interface that is known.
    Interface,
    /// It imports what every plugin may, what it is granted, and nothing else.
    Imports,
    /// Its tools keep the rules of declarations.
    Declares,
    /// Its schemas are valid, bounded, and refer to nothing outside themselves.
    Schemas,
    /// The declaration in its section is the one that its code gives.
    Packed,
    /// Its code gives the same declaration each time.
    Constant,
    /// It is not much larger than others of its toolchain.
    Size,
    /// It starts about as fast as others of its toolchain.
    Start,
    /// It leaves room for itself within the memory that a call may have.
    Memory,
    /// Its calls end soon enough for the kit to ask it everything.
    Time,
    /// Every server tool answers with a result or a failure.
    Answers,
    /// Results are JSON and fit the declared schema.
    Results,
    /// The author's examples end as they say.
    Examples,
    /// A failure says something.
    Failures,
    /// Arguments that break the schema are a failure, and no trap.
    InvalidArguments,
    /// A tool that it does not have is a failure, and no trap.
    UnknownTool,
    /// Progress comes from streaming tools alone, has words, and does not go back.
    Progress,
    /// A call that is asked to stop comes to its end.
    Stop,
    /// Characters of every kind are taken.
    Unicode,
    /// Empty texts and lists are taken.
    Empty,
    /// The largest arguments that the schema allows are taken.
    Largest,
    /// Numbers at the edges are taken.
    Numbers,
    /// The same call gives the same answer.
    Determinism,
    /// A tool that says it is idempotent changes nothing more at its second attempt.
    Idempotency,
}

impl Requirement {
    /// Every requirement with its name and what it asks, in the order of a report.
    pub const ALL: [(Self, &'static str, &'static str); 25] = [
        (Self::Loads, "loads", "a host takes the component"),
        (Self::Interface, "interface", "it is written against a version of the interface that this host knows"),
        (Self::Imports, "imports", "it imports what it may use and nothing else"),
        (Self::Declares, "declares", "its tools keep the rules of declarations"),
        (Self::Schemas, "schemas", "its schemas are valid, bounded and complete in themselves"),
        (Self::Packed, "packed", "the declaration in its section is the one that its code gives"),
        (Self::Constant, "constant", "its code gives the same declaration each time"),
        (Self::Size, "size", "it is not much larger than others of its toolchain"),
        (Self::Start, "start", "it starts about as fast as others of its toolchain"),
        (Self::Memory, "memory", "it leaves room within the memory that a call may have"),
        (Self::Time, "time", "its calls end soon enough to ask it everything"),
        (Self::Answers, "answers", "every server tool answers, with a result or a failure"),
        (Self::Results, "results", "results are JSON and fit the declared schema"),
        (Self::Examples, "examples", "the author's examples end as they say"),
        (Self::Failures, "failures", "a failure says what was wrong"),
        (
            Self::InvalidArguments,
            "invalid-arguments",
            "arguments that break the schema are no trap, and a failure says why",
        ),
        (Self::UnknownTool, "unknown-tool", "a tool that it does not have is a failure, not a trap"),
        (Self::Progress, "progress", "progress comes from streaming tools, has words and does not go back"),
        (Self::Stop, "stop", "a call that is asked to stop comes to its end"),
        (Self::Unicode, "unicode", "characters of every kind are taken"),
        (Self::Empty, "empty", "empty texts and lists are taken"),
        (Self::Largest, "largest", "the largest arguments that the schema allows are taken"),
        (Self::Numbers, "numbers", "numbers at the edges are taken"),
        (Self::Determinism, "determinism", "the same call gives the same answer"),
        (Self::Idempotency, "idempotency", "a second attempt of an idempotent tool changes nothing more"),
    ];

    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// What it asks, as a clause.
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
