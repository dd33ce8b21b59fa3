//! Validates values against the schemas of one tool. The messages tell a model how to correct a value.

use std::sync::{Arc, OnceLock};

use dispatch::ports::Checks;
use domain::json::pointer_step;
use domain::{Json, Tool, Violation};
use jsonschema::error::ValidationError;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::json;

mod charge;
mod choice;
mod cost;
mod draft;
mod graph;
mod pattern;
mod place;
mod rates;
mod violation;

use cost::{Costs, Extent};
pub(crate) use draft::Draft;
pub(crate) use graph::{Graph, REFERENCES, children, key};
use pattern::{Pattern, Work};
use place::Without;
use rates::Rates;
use violation::{cut, violation};

/// The largest number of violations that are reported for one value.
const MAX_VIOLATIONS: usize = 16;

/// The stack size of a thread that compiles a schema, or explains a deep value. Only the used part takes memory.
const LARGE_STACK: usize = 64 << 20;

/// A compiled schema. The cost of validating a value has a bound: by an estimate before the validation, or by charging
/// the work while it runs.
pub(crate) struct Compiled {
    validator: Validator,
    costs: Costs,
    /// The patterns for names of members.
    names: Vec<Pattern>,
    /// Finds the first fault and charges its work. Compiled when it is first needed.
    charging: OnceLock<Option<(Validator, Without)>>,
}

/// Compiles a schema by the rules of its draft. Never fetches anything: a reference to another document is an error.
///
/// # Errors
/// The fault in the schema, and its location.
pub(crate) fn compile(schema: &Value) -> Result<Compiled, Violation> {
    let compile = || {
        let draft = Draft::of(schema).ok_or_else(|| whole("it uses a draft that this host does not know"))?;
        let validator = validator(&unnamed(schema, draft), draft)?;
        let names = Graph::of(schema).schemas.iter().flat_map(|(schema, _)| names(schema)).collect();
        Ok(Compiled { validator, costs: Costs::of(schema), names, charging: OnceLock::new() })
    };
    // The compiler recurses along references, and a stack overflow ends the process.
    on_large_stack(compile)?
}

/// `schema` is without its name.
fn validator(schema: &Value, draft: Draft) -> Result<Validator, Violation> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(pattern::NAME_STEPS)
        .size_limit(pattern::MAX_PATTERN)
        .dfa_size_limit(pattern::MAX_PATTERN);
    let options = draft.options().offline().with_pattern_options(patterns);
    let options = options.with_keyword("pattern", Pattern::keyword).with_keyword(charge::KEYWORD, charge::keyword);
    let options = options.with_keyword(choice::KEYWORD, choice::keyword);
    let violation_of_schema = |error: ValidationError<'_>| Violation {
        pointer: error.schema_path().as_str().to_owned(),
        message: cut(error.to_string()),
    };
    options.build(schema).map_err(violation_of_schema)
}

/// The schema without its own address, and with references that begin with `#`. With the address, the library would resolve
/// them in its own copy of a published schema that has the same address.
fn unnamed(schema: &Value, draft: Draft) -> Value {
    let mut unnamed = schema.clone();
    let graph = Graph::of(schema);
    for (part, at) in &graph.schemas {
        for keyword in REFERENCES {
            let reference = part.get(keyword).and_then(Value::as_str).and_then(|reference| graph.fragment(reference));
            if let (Some(fragment), Some(part)) = (reference, unnamed.pointer_mut(at)) {
                part[keyword] = format!("#{fragment}").into();
            }
        }
    }
    if let Value::Object(members) = &mut unnamed {
        members.retain(|keyword, value| match keyword.as_str() {
            "$id" => value.as_str().is_some_and(|id| draft.is_anchor(id)),
            keyword => keyword != "$schema",
        });
    }
    unnamed
}

impl Compiled {
    /// Lists how a value breaks the schema, or only its first fault. If a value costs too much, the one violation says so.
    /// `schema` returns the schema, which is needed only for a value that may cost too much.
    pub(crate) fn violations(&self, value: &Value, schema: &(dyn Fn() -> Option<Value> + Sync)) -> Vec<Violation> {
        let extent = Extent::of(value);
        let cost = self.costs.total(&extent);
        let Some(left) = cost::MAX_COST.checked_sub(cost) else { return self.first(value, schema, false) };
        let (is_valid, work) =
            Work::within(left, || self.names_are_cheap(value, Rates::default()) && self.validator.is_valid(value));
        if is_valid && !work.is_incomplete {
            return Vec::new();
        }
        if work.left == 0 && work.is_incomplete {
            return vec![self.costly(value)];
        }
        let cost = cost::MAX_COST - work.left;
        // If the listing costs too much, the first fault is found instead. A match that did not finish hides that fault, so
        // the listing then has all the work that finding it might take.
        let budget = if work.is_incomplete { cost::MAX_COST } else { work.left };
        let all = self.costs.copies(&extent) <= cost::MAX_COPIES && cost <= cost::MAX_DETAIL_COST;
        let listed = if all || self.costs.may_find_first(&extent, cost, budget) {
            self.listed(value, budget, all, extent.depth())
        } else {
            Vec::new()
        };
        match listed {
            found if !found.is_empty() => found,
            _ if work.is_incomplete => vec![self.costly(value)],
            _ => self.first(value, schema, true),
        }
    }

    /// Lists the violations, or only the first. Nothing if that is more work than `budget`.
    fn listed(&self, value: &Value, budget: u64, all: bool, depth: usize) -> Vec<Violation> {
        let list = || -> Vec<Violation> {
            if all {
                self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(|error| violation(&error)).collect()
            } else {
                self.validator.validate(value).err().iter().map(violation).collect()
            }
        };
        let listed = || Work::within(budget, list);
        let listed = if depth > cost::MAX_DETAIL_DEPTH { on_large_stack(listed) } else { Ok(listed()) };
        // After the last of the work, each value looks as if it did not match.
        listed.ok().filter(|(_, work)| work.left > 0).map(|(found, _)| found).unwrap_or_default()
    }

    /// Finds the first fault. Charges its work, which may be as much as [`cost::MAX_COST`]. `is_misfit` says that the value is
    /// known to have a fault.
    fn first(&self, value: &Value, schema: &(dyn Fn() -> Option<Value> + Sync), is_misfit: bool) -> Vec<Violation> {
        let compile = || {
            let schema = schema()?;
            let draft = Draft::of(&schema)?;
            let (findable, without) = place::findable(&unnamed(&schema, draft), draft);
            Some((validator(&findable, draft).ok()?, without))
        };
        let unplaced = |without: &Without| vec![if is_misfit { place::unplaced(without) } else { self.costly(value) }];
        let find = || {
            let Some((validator, without)) = self.charging.get_or_init(compile) else {
                return unplaced(&Without::new());
            };
            let rates =
                self.names.iter().map(|name| pattern::name_rates(name.source())).fold(Rates::default(), Rates::plus);
            let first = || self.names_are_cheap(value, rates).then(|| place::first(validator, value));
            match Work::within(cost::MAX_COST, first) {
                (Some(found), work) if !work.is_incomplete => match found {
                    Some(found) => vec![found],
                    None if without.is_empty() && !is_misfit => Vec::new(),
                    None if is_misfit => vec![self.narrowed(value, without)],
                    None => unplaced(without),
                },
                _ => vec![self.costly(value)],
            }
        };
        // The value may be deep, and the compiler recurses along references.
        on_large_stack(find).unwrap_or_else(|_| vec![self.costly(value)])
    }

    /// The fault of a value that breaks one of these keywords.
    fn narrowed(&self, value: &Value, without: &Without) -> Violation {
        let mut left = cost::MAX_COST;
        let fits = |value: &Value| {
            left = left.checked_sub(self.costs.total(&Extent::of(value)))?;
            let valid = || self.names_are_cheap(value, Rates::default()) && self.validator.is_valid(value);
            let (is_valid, work) = Work::within(left, valid);
            left = work.left;
            (!work.is_incomplete).then_some(is_valid)
        };
        Violation { pointer: place::narrowed(value.clone(), fits), ..place::unplaced(without) }
    }

    /// Whether each match of a name of a member finishes. Charges each name at these rates.
    fn names_are_cheap(&self, value: &Value, rates: Rates) -> bool {
        self.unmatched(value, rates).is_none()
    }

    /// The steps to the first member whose name could not be matched, the last step first, and the pattern if that is the reason.
    fn unmatched(&self, value: &Value, rates: Rates) -> Option<(Vec<String>, Option<&str>)> {
        let within = |step: &dyn Fn() -> String, value| {
            let (mut steps, pattern) = self.unmatched(value, rates)?;
            steps.push(step());
            Some((steps, pattern))
        };
        let name = |name: &String| {
            if !Work::charge(rates.times(Rates::of_text(name))) {
                return Some((vec![name.clone()], None));
            }
            let pattern = self.names.iter().find(|pattern| pattern.matches(name).is_none())?;
            Some((vec![name.clone()], Some(pattern.source())))
        };
        match value {
            _ if self.names.is_empty() => None,
            Value::Array(items) => items.iter().enumerate().find_map(|(n, item)| within(&|| n.to_string(), item)),
            Value::Object(members) => {
                members.iter().find_map(|(key, value)| name(key).or_else(|| within(&|| key.clone(), value)))
            }
            _ => None,
        }
    }

    /// The violation of a value that costs too much: at the name that takes too long to match, or else at the innermost part
    /// that has most of the value.
    fn costly(&self, value: &Value) -> Violation {
        let (unmatched, _) = Work::within(cost::MAX_COST, || self.unmatched(value, Rates::default()));
        let Some((steps, Some(pattern))) = unmatched else {
            return Violation { pointer: cost::largest_part(value), message: COSTLY.to_owned() };
        };
        let pointer = steps.iter().rev().map(|step| format!("/{}", pointer_step(step))).collect();
        Violation { pointer, message: cut(format!("its name takes too long to match with \"{pattern}\"")) }
    }
}

/// The patterns of `patternProperties`.
fn names(schema: &Value) -> Vec<Pattern> {
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    patterns.into_iter().flat_map(serde_json::Map::keys).filter_map(|name| Pattern::of_names(name)).collect()
}

/// Runs work that recurses deeply.
///
/// # Errors
/// Why it did not run to its end.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Violation> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(LARGE_STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| whole(format!("the host cannot use it now: {error}")))?;
        thread.join().map_err(|_| whole("the host failed while it used it"))
    })
}

const COSTLY: &str = "it is too large to check against the schema: make it smaller, or split it";

/// The schemas of one tool. Each is compiled at its first use.
pub(crate) struct Schemas {
    parameters: Schema,
    result: Option<Schema>,
    response: Option<Schema>,
}

/// One schema, which is compiled at its first use.
pub(crate) struct Schema {
    text: Json,
    /// Contains `None` if the schema cannot be compiled. A tool that passed the rules has no such schema.
    compiled: OnceLock<Option<Compiled>>,
}

/// Returns the validator for the schemas of a tool that passed the rules.
#[must_use]
pub fn checks(tool: &Tool) -> Arc<dyn Checks> {
    Arc::new(Schemas::of(tool))
}

/// The faults of a value for a schema that passed the rules.
#[must_use]
pub fn violations(schema: &Json, value: &Json) -> Vec<Violation> {
    Schema::of(schema.clone()).violations(value)
}

impl Schemas {
    pub(crate) fn of(tool: &Tool) -> Self {
        let schema = |text: &Json| Schema::of(text.clone());
        Self {
            parameters: schema(&tool.parameters),
            result: tool.options.result.as_ref().map(schema),
            response: tool.options.response.as_ref().map(schema),
        }
    }
}

impl Checks for Schemas {
    fn arguments(&self, value: &Json) -> Vec<Violation> {
        self.parameters.violations(value)
    }

    fn result(&self, value: &Json) -> Vec<Violation> {
        self.result.as_ref().map_or_else(|| form(value), |schema| schema.violations(value))
    }

    fn response(&self, value: &Json) -> Vec<Violation> {
        self.response.as_ref().map_or_else(|| form(value), |schema| schema.violations(value))
    }

    fn name_matches(&self, pattern: &str, name: &str) -> bool {
        let names = self.parameters.compiled().map_or(&[][..], |compiled| &compiled.names);
        let pattern = names.iter().find(|known| known.source() == pattern);
        pattern.is_some_and(|pattern| Work::within(cost::MAX_COST, || pattern.matches(name)).0 == Some(true))
    }
}

/// Checks a value for which there is no schema: it must be JSON that the host can read.
fn form(value: &Json) -> Vec<Violation> {
    value.check_stored().err().map(Violation::from).into_iter().collect()
}

/// Returns a violation that concerns the whole value.
fn whole(message: impl Into<String>) -> Violation {
    Violation { pointer: String::new(), message: message.into() }
}

impl Schema {
    pub(crate) const fn of(text: Json) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    fn compiled(&self) -> Option<&Compiled> {
        let compile = || compile(&self.read()?).ok();
        self.compiled.get_or_init(compile).as_ref()
    }

    fn read(&self) -> Option<Value> {
        json::read(self.text.as_str()).ok().map(|(schema, _)| schema)
    }

    pub(crate) fn violations(&self, value: &Json) -> Vec<Violation> {
        let value = match value.value() {
            Ok(value) => json::for_schema(&value),
            Err(malformed) => return vec![malformed.into()],
        };
        match self.compiled() {
            Some(compiled) => compiled.violations(&value, &|| self.read()),
            None => vec![whole("the tool's schema cannot be used, so nothing fits it")],
        }
    }
}

#[cfg(test)]
mod tests;
