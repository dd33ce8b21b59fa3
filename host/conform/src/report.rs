//! What became of each requirement.

use std::collections::BTreeMap;

use crate::{Requirement, Toolchain};

/// Problems that are told of one requirement; the number of the others is told.
const MOST: usize = 8;

/// What became of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept.
    Passed,
    /// It is not: the row has problems.
    Failed,
    /// It could not be judged, or asks nothing of this component: the note says why.
    Skipped,
}

impl Verdict {
    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed => "fail",
            Self::Skipped => "skip",
        }
    }
}

/// One thing that breaks a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The tool, where it is about one.
    pub tool: Option<String>,
    /// What happened.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// A requirement and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which.
    pub requirement: Requirement,
    /// What became of it.
    pub verdict: Verdict,
    /// What breaks it.
    pub problems: Vec<Problem>,
    /// A figure, or why it was skipped.
    pub note: Option<String>,
}

/// What became of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What the component was made with, as it says.
    pub toolchain: Toolchain,
    /// Its size, in bytes.
    pub size: usize,
    /// The names of its tools.
    pub tools: Vec<String>,
    problems: BTreeMap<Requirement, Vec<Problem>>,
    passed: BTreeMap<Requirement, Option<String>>,
    skipped: BTreeMap<Requirement, String>,
    rest: String,
}

impl Report {
    pub(crate) fn new(toolchain: Toolchain, size: usize, tools: impl Iterator<Item = String>) -> Self {
        Self {
            toolchain,
            size,
            tools: tools.collect(),
            problems: BTreeMap::new(),
            passed: BTreeMap::new(),
            skipped: BTreeMap::new(),
            rest: "nothing of this component could be held to it".into(),
        }
    }

    /// Says that a requirement was looked at, and found kept as far as nothing else is said.
    pub(crate) fn looked(&mut self, requirement: Requirement) {
        self.passed.entry(requirement).or_default();
    }

    /// Likewise, with a figure.
    pub(crate) fn note(&mut self, requirement: Requirement, note: String) {
        self.passed.insert(requirement, Some(note));
    }

    pub(crate) fn problem(&mut self, requirement: Requirement, problem: Problem) {
        self.problems.entry(requirement).or_default().push(problem);
    }

    pub(crate) fn skip(&mut self, requirement: Requirement, why: &str) {
        self.skipped.entry(requirement).or_insert_with(|| why.to_owned());
    }

    /// Gives the reason for each case that was skipped.
    pub(crate) fn skip_rest(&mut self, why: &str) {
        why.clone_into(&mut self.rest);
    }

    /// Every requirement, in order.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        Requirement::ALL.iter().map(|(requirement, ..)| self.row(*requirement)).collect()
    }

    /// Whether nothing failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }

    fn row(&self, requirement: Requirement) -> Row {
        if let Some(problems) = self.problems.get(&requirement) {
            let more = problems.len().saturating_sub(MOST);
            let note = (more > 0).then(|| format!("and {more} more of the kind"));
            let problems = problems.iter().take(MOST).cloned().collect();
            return Row { requirement, verdict: Verdict::Failed, problems, note };
        }
        if let Some(note) = self.passed.get(&requirement) {
            return Row { requirement, verdict: Verdict::Passed, problems: Vec::new(), note: note.clone() };
        }
        let note = Some(self.skipped.get(&requirement).unwrap_or(&self.rest).clone());
        Row { requirement, verdict: Verdict::Skipped, problems: Vec::new(), note }
    }
}
