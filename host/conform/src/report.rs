//! The result of each requirement.

use std::collections::BTreeMap;

use crate::{Requirement, Toolchain};

/// The maximum number of problems that a report shows for one requirement. It counts the others.
const MAX_PROBLEMS: usize = 8;

/// The result of one requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestResult {
    Passed,
    /// The row has problems.
    Failed,
    /// Not tested, or not applicable. The note states why.
    Skipped,
}

impl TestResult {
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

/// One violation of a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// The tool, if the problem is about one.
    pub tool: Option<String>,
    pub what: String,
    /// How to solve it.
    pub remedy: String,
}

/// A requirement and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub requirement: Requirement,
    pub verdict: TestResult,
    pub problems: Vec<Defect>,
    /// A figure, or the reason for skipping.
    pub note: Option<String>,
}

/// The results of all requirements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConformanceReport {
    /// The component's toolchain, as it states.
    pub toolchain: Toolchain,
    /// Its size in bytes.
    pub size: usize,
    pub tools: Vec<String>,
    problems: BTreeMap<Requirement, Vec<Defect>>,
    passed: BTreeMap<Requirement, Option<String>>,
    skipped: BTreeMap<Requirement, String>,
    rest: String,
    /// Whether a tool answered, so that each requirement could be tested.
    is_answered: bool,
}

impl ConformanceReport {
    pub(crate) fn new(toolchain: Toolchain, size: usize, tools: impl Iterator<Item = String>) -> Self {
        Self {
            toolchain,
            size,
            tools: tools.collect(),
            problems: BTreeMap::new(),
            passed: BTreeMap::new(),
            skipped: BTreeMap::new(),
            rest: "it does not apply to this component".into(),
            is_answered: false,
        }
    }

    /// Marks a requirement as tested. It passes unless a problem follows.
    pub(crate) fn looked(&mut self, requirement: Requirement) {
        self.passed.entry(requirement).or_default();
    }

    /// Marks a requirement as tested, with a figure.
    pub(crate) fn note(&mut self, requirement: Requirement, note: String) {
        self.passed.insert(requirement, Some(note));
    }

    pub(crate) fn problem(&mut self, requirement: Requirement, problem: Defect) {
        self.problems.entry(requirement).or_default().push(problem);
    }

    /// A problem of the component as a whole.
    pub(crate) fn fail(&mut self, requirement: Requirement, what: impl Into<String>, remedy: impl Into<String>) {
        self.problem(requirement, Defect { tool: None, what: what.into(), remedy: remedy.into() });
    }

    pub(crate) fn skip(&mut self, requirement: Requirement, why: &str) {
        self.skipped.entry(requirement).or_insert_with(|| why.to_owned());
    }

    /// Marks that a tool answered. From then on, each requirement that stays untested has its own reason.
    pub(crate) fn answered(&mut self) {
        self.is_answered = true;
    }

    /// Sets the reason for all requirements that stay untested.
    pub(crate) fn skip_rest(&mut self, why: &str) {
        why.clone_into(&mut self.rest);
        self.is_answered = false;
    }

    /// Every requirement, in order.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        Requirement::ALL.iter().map(|(requirement, ..)| self.row(*requirement)).collect()
    }

    #[must_use]
    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }

    fn row(&self, requirement: Requirement) -> Row {
        if let Some(problems) = self.problems.get(&requirement) {
            let more = problems.len().saturating_sub(MAX_PROBLEMS);
            let note = (more > 0).then(|| format!("and {more} more like these"));
            let problems = problems.iter().take(MAX_PROBLEMS).cloned().collect();
            return Row { requirement, verdict: TestResult::Failed, problems, note };
        }
        if let Some(note) = self.passed.get(&requirement) {
            return Row { requirement, verdict: TestResult::Passed, problems: Vec::new(), note: note.clone() };
        }
        let own = self.skipped.get(&requirement).cloned();
        let of_kind = || requirement.untested().filter(|_| self.is_answered).map(str::to_owned);
        let note = Some(own.or_else(of_kind).unwrap_or_else(|| self.rest.clone()));
        Row { requirement, verdict: TestResult::Skipped, problems: Vec::new(), note }
    }
}
