//! Estimates the cost of validating a value against a schema, before the validation starts.
//!
//! Plugins write the schemas, and models write the values. Their sizes multiply: a schema may apply thousands of
//! subschemas to each location of a value, and a value may have half a million locations. Validation must not block its
//! thread for long. So a validation that might cost too much charges its work while it runs, which makes it slower
//! (`charge.rs`).
//!
//! The host analyses a schema once: [`Costs`] has the cost of one location at each depth of a value. It then measures
//! each value in one pass: [`Extent`] counts the parts of the value at each depth.

use std::collections::HashMap;

use domain::json::{MAX_STORED_DEPTH, pointer_step};
use serde_json::Value;

use super::graph::{Graph, Nesting, children, key};
use super::pattern;
use super::rates::Rates;

/// The largest cost of a value that the host validates. One unit is about one nanosecond in the worst case that is
/// accepted. A typical value of one megabyte takes a tenth of this.
pub(super) const MAX_COST: u64 = 100_000_000;

/// The largest cost of a value whose violations the host lists. A listing follows every alternative to its end and
/// records each fault. This takes several times as long as finding out that the value is invalid.
pub(super) const MAX_DETAIL_COST: u64 = MAX_COST / 50;

/// The largest depth of a value whose violations the host lists. This bounds the stack: a schema may apply a dozen
/// nested subschemas to one location.
pub(super) const MAX_DETAIL_DEPTH: usize = 32;

/// The largest copies of a value that a listing may make, in bytes.
pub(super) const MAX_COPIES: u64 = 32 << 20;

/// The memory of a location and of a string in a copy, without the bytes of the string.
const LOCATION: u64 = 160;
const STRING: u64 = 48;

/// The cost of one keyword, of one comparison with a value, or of one lookup of a name.
const STEP: u64 = 20;

/// The cost of `uniqueItems` for each location inside the items, and for each byte of their strings.
const UNIQUE: Rates = Rates([200, 0, 2, 0]);

/// The counts of a value at each depth, and the size of the largest location there with everything inside it.
pub(super) struct Extent(Vec<(Rates, u64)>);

impl Extent {
    /// Recurses as deeply as the value is nested.
    pub(super) fn of(value: &Value) -> Self {
        let mut extent = Self(Vec::new());
        extent.count(value, 0);
        extent
    }

    /// The cost of comparing all items of an array with each other.
    pub(super) fn unique(&self) -> u64 {
        self.0.iter().skip(1).map(|(counted, _)| UNIQUE.times(*counted)).fold(0, u64::saturating_add)
    }

    /// The nesting of the value: 0 for a scalar.
    pub(super) fn depth(&self) -> usize {
        self.0.len() - 1
    }

    /// Returns the size of a copy of the value.
    fn count(&mut self, value: &Value, depth: usize) -> u64 {
        self.at(depth).0.0[0] += 1;
        let inside = match value {
            Value::String(text) => self.text(text, depth),
            Value::Array(items) => items.iter().map(|item| self.count(item, depth + 1)).sum(),
            Value::Object(members) => {
                let member = |(name, value): (&String, _)| self.text(name, depth + 1) + self.count(value, depth + 1);
                members.iter().map(member).sum()
            }
            _ => 0,
        };
        let size = LOCATION + inside;
        let (_, largest) = self.at(depth);
        *largest = size.max(*largest);
        size
    }

    fn text(&mut self, text: &str, depth: usize) -> u64 {
        let (counted, _) = self.at(depth);
        *counted = counted.plus(Rates::of_text(text));
        STRING + text.len() as u64
    }

    fn at(&mut self, depth: usize) -> &mut (Rates, u64) {
        if self.0.len() <= depth {
            self.0.resize(depth + 1, Default::default());
        }
        &mut self.0[depth]
    }
}

/// The JSON Pointer of the innermost part that has more than half of a large value.
pub(super) fn largest_part(value: &Value) -> String {
    let half = size(value, u64::MAX, &mut None) / 2;
    let mut steps = None;
    size(value, half.max(LOCATION), &mut steps);
    steps.unwrap_or_default().iter().rev().map(|step| format!("/{}", pointer_step(step))).collect()
}

/// The number of locations and bytes. Notes the steps from the first part with more than `bound` of them, the last step
/// first.
fn size(value: &Value, bound: u64, steps: &mut Option<Vec<String>>) -> u64 {
    let mut inside = |step: &dyn Fn() -> String, value: &Value| {
        let was_found = steps.is_some();
        let size = size(value, bound, steps);
        if !was_found && let Some(steps) = steps {
            steps.push(step());
        }
        size
    };
    let size = 1 + match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().enumerate().map(|(n, item)| inside(&|| n.to_string(), item)).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() as u64 + inside(&|| name.clone(), value)).sum()
        }
        _ => 0,
    };
    if steps.is_none() && size > bound {
        *steps = Some(Vec::new());
    }
    size
}

/// The costs of a schema.
pub(super) struct Costs {
    /// The cost of one location at each depth of a value, along the most expensive path, and whether `anyOf` or `oneOf`
    /// may apply to it. All depths after the last entry are like the last entry.
    rates: Vec<(Rates, bool)>,
}

impl Costs {
    /// The schema must keep the rules about references.
    pub(super) fn of(schema: &Value) -> Self {
        let survey = Survey::of(schema);
        let root = survey.nodes.len() - 1;
        let mut rates = vec![];
        let mut below = vec![Cost::default(); survey.nodes.len()];
        for depth in 0..=MAX_STORED_DEPTH {
            let level = survey.level(depth, &below);
            rates.push((level[root].holding, level[root].has_alternatives));
            // From 2 on, each level depends only on the level before it. If two in a row are equal, so are the rest.
            if depth > 2 && level == below {
                break;
            }
            below = level;
        }
        Self { rates }
    }

    /// The cost of each depth of a value, and whether alternatives may apply there.
    fn rates<'a>(&'a self, extent: &'a Extent) -> impl DoubleEndedIterator<Item = ((Rates, bool), &'a (Rates, u64))> {
        let last = self.rates.last().copied().unwrap_or_default();
        let of = move |depth| self.rates.get(depth).copied().unwrap_or(last);
        extent.0.iter().enumerate().map(move |(depth, counted)| (of(depth), counted))
    }

    pub(super) fn total(&self, extent: &Extent) -> u64 {
        self.rates(extent).map(|((rates, _), (counted, _))| rates.times(*counted)).fold(0, u64::saturating_add)
    }

    /// The size of the copies that a listing of all violations may make. If no alternative of `anyOf` or `oneOf` fits,
    /// the library copies the location for each violation of each alternative, with everything inside the location.
    pub(super) fn copies(&self, extent: &Extent) -> u64 {
        if !self.rates.iter().any(|(_, has_alternatives)| *has_alternatives) {
            return 0;
        }
        let (mut size, mut copies) = (0_u64, 0_u64);
        for ((rates, _), (counted, _)) in self.rates(extent).rev() {
            let here = Rates([LOCATION, STRING, 1, 0]).times(*counted);
            size = size.saturating_add(here);
            copies = copies.saturating_add(size.saturating_mul(rates.0[0] / STEP));
        }
        copies
    }

    /// Whether the host may look for the first violation of a value whose validation has this cost, within a budget. The
    /// library validates alternatives again at each depth, and copies only the location where none of them fits.
    pub(super) fn may_find_first(&self, extent: &Extent, cost: u64, budget: u64) -> bool {
        let (mut below, mut copies, mut depths) = (0_u64, 0_u64, 1);
        for ((rates, has_alternatives), (_, largest)) in self.rates(extent).rev() {
            below = below.saturating_add(rates.0[0] / STEP);
            if has_alternatives {
                depths += 1;
                copies = copies.max(below.saturating_mul(*largest));
            }
        }
        copies <= MAX_COPIES && cost.saturating_mul(depths) <= budget
    }
}

/// The cost of one schema at one depth below the location that it applies to.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Cost {
    /// The cost of validating a value.
    holding: Rates,
    /// The cost of marking the parts that it evaluates, for an enclosing `unevaluatedProperties` or `unevaluatedItems`.
    marking: Rates,
    /// Whether `anyOf` or `oneOf` may apply.
    has_alternatives: bool,
}

/// The keyword costs of one schema, and the indexes of the schemas that it applies.
#[derive(Default)]
struct Node {
    /// The cost at the location itself.
    own: Rates,
    /// The cost at each location one level below.
    members: Rates,
    is_unique: bool,
    has_alternatives: bool,
    marks: bool,
    same: Vec<usize>,
    /// At most one of these applies to each member.
    named: Vec<usize>,
    inside: Vec<usize>,
}

/// The schemas of a document. The last one is the document itself.
struct Survey {
    nodes: Vec<Node>,
    /// The indexes of all nodes. Each node comes after the nodes in its `same`.
    order: Vec<usize>,
}

impl Survey {
    fn of(schema: &Value) -> Self {
        let graph = Graph::of(schema);
        let numbers: HashMap<usize, usize> =
            graph.schemas.iter().enumerate().map(|(number, (schema, _))| (key(schema), number)).collect();
        let number = |schema: &Value| numbers.get(&key(schema)).copied();
        let nodes: Vec<Node> = graph
            .schemas
            .iter()
            .map(|(schema, _)| {
                let mut node = keywords(schema);
                node.same = graph.in_place(schema).filter_map(number).collect();
                for child in children(schema) {
                    match child.place {
                        Nesting::Member => node.named.extend(number(child.schema)),
                        Nesting::Inside => node.inside.extend(number(child.schema)),
                        Nesting::Same | Nesting::Nowhere => {}
                    }
                }
                node
            })
            .collect();
        let mut survey = Self { order: Vec::with_capacity(nodes.len()), nodes };
        let mut seen = vec![false; survey.nodes.len()];
        for number in 0..survey.nodes.len() {
            survey.sort(number, &mut seen);
        }
        survey
    }

    /// Recurses along `same`. The rules about references keep these paths short and free of cycles.
    fn sort(&mut self, number: usize, seen: &mut [bool]) {
        if std::mem::replace(&mut seen[number], true) {
            return;
        }
        for same in self.nodes[number].same.clone() {
            self.sort(same, seen);
        }
        self.order.push(number);
    }

    /// Computes the costs at `depth` from `below`, which has the costs at `depth - 1`.
    fn level(&self, depth: usize, below: &[Cost]) -> Vec<Cost> {
        let mut level = vec![Cost::default(); self.nodes.len()];
        for &number in &self.order {
            let node = &self.nodes[number];
            let mut own = match depth {
                0 => node.own,
                1 => node.members,
                _ => Rates::default(),
            };
            if depth > 0 && node.is_unique {
                own = own.plus(UNIQUE);
            }
            own = own.plus(node.named.iter().map(|n| below[*n].holding).fold(Rates::default(), Rates::max));
            own = own.plus(node.inside.iter().map(|n| below[*n].holding).fold(Rates::default(), Rates::plus));
            let held = node.same.iter().map(|n| level[*n].holding).fold(Rates::default(), Rates::plus);
            let marked = node.same.iter().map(|n| level[*n].marking).fold(Rates::default(), Rates::plus);
            // Marking validates each alternative again. It then collects the parts that the alternative evaluated.
            let marking = own.plus(held).plus(marked);
            let holding = own.plus(held).plus(if node.marks { marking } else { Rates::default() });
            let below = node.named.iter().chain(&node.inside).any(|n| below[*n].has_alternatives);
            let has_alternatives =
                below || (depth == 0 && node.has_alternatives) || node.same.iter().any(|n| level[*n].has_alternatives);
            level[number] = Cost { holding, marking, has_alternatives };
        }
        level
    }
}

/// The costs of one schema's keywords: for the value itself and for each of its members, and whether items must be unique.
pub(super) fn rates_of(schema: &Value) -> (Rates, Rates, bool) {
    let node = keywords(schema);
    (node.own, node.members, node.is_unique)
}

/// Returns the costs of one schema's keywords, without the costs of its subschemas.
fn keywords(schema: &Value) -> Node {
    let mut node = Node { own: Rates([STEP, 0, 0, 0]), ..Node::default() };
    let Value::Object(keywords) = schema else { return node };
    for (keyword, value) in keywords {
        let mut steps = 1;
        match keyword.as_str() {
            "enum" | "const" => steps += nodes(value) / 4,
            "required" | "dependentRequired" => steps += nodes(value),
            "properties" | "dependentSchemas" => {
                steps += value.as_object().map_or(0, |map| map.len() as u64);
                node.members = node.members.plus(Rates([5 * STEP, 0, 0, 0]));
            }
            "dependencies" => {
                let names = |names: &Value| 1 + names.as_array().map_or(0, |names| names.len() as u64);
                steps += value.as_object().map_or(0, |map| map.values().map(names).sum());
                node.members = node.members.plus(Rates([5 * STEP, 0, 0, 0]));
            }
            "minLength" | "maxLength" => node.own = node.own.plus(Rates([0, 0, 1, 0])),
            "pattern" => node.own = node.own.plus(value.as_str().map_or_else(Rates::default, pattern::rates)),
            "patternProperties" => {
                for name in value.as_object().into_iter().flat_map(|map| map.keys()) {
                    node.members = node.members.plus(pattern::name_rates(name));
                }
            }
            "additionalProperties" => node.members = node.members.plus(Rates([STEP, 0, 0, 0])),
            "anyOf" | "oneOf" => node.has_alternatives = true,
            "uniqueItems" => node.is_unique = value == &Value::Bool(true),
            "unevaluatedProperties" | "unevaluatedItems" => node.marks = true,
            _ => {}
        }
        node.own = node.own.plus(Rates([steps * STEP, 0, 0, 0]));
    }
    node.members = node.members.plus(Rates([STEP, 0, 0, 0]));
    node
}

/// Counts the value itself and all values inside it.
fn nodes(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(nodes).fold(1, u64::saturating_add),
        Value::Object(members) => members.values().map(nodes).fold(1, u64::saturating_add),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The cost of one location at each depth, in steps.
    fn steps(schema: &Value, depths: usize) -> Vec<u64> {
        let costs = Costs::of(schema).rates;
        let last = costs[costs.len() - 1];
        costs.into_iter().chain(std::iter::repeat(last)).take(depths).map(|(rates, _)| rates.0[0] / STEP).collect()
    }

    #[test]
    fn costs_are_counted_at_each_depth_along_the_costliest_way() {
        let tree = json!({"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}});
        let twice = json!({"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}});
        let condition = json!({"if": {}, "then": {}, "unevaluatedProperties": false});
        for (schema, expected) in [
            (json!(true), vec![1, 0, 0]),
            (json!({}), vec![1, 1, 0]),
            (json!({"allOf": [{}, {}], "items": {}}), vec![5, 4, 1]),
            (json!({"enum": [1, 2, 3, [4, 5]]}), vec![3, 1, 0]),
            (json!({"uniqueItems": true}), vec![2, 11, 10, 10]),
            (tree, vec![4, 12, 13, 13, 13]),
            (twice, vec![2, 11, 25, 50, 100]),
            (condition, vec![14, 8, 0]),
        ] {
            assert_eq!(steps(&schema, expected.len()), expected, "{schema}");
        }
    }

    #[test]
    fn a_value_is_counted_at_each_depth() {
        let Extent(counted) = Extent::of(&json!({"ab": ["xyz", 1], "c": {}}));
        let expected = [[1, 0, 0, 0], [2, 2, 3, 5], [2, 1, 3, 9]];
        assert_eq!(counted.iter().map(|(rates, _)| rates.0).collect::<Vec<_>>(), expected);
        let inner = LOCATION + STRING + 3;
        let outer = 2 * LOCATION + inner;
        let largest = [2 * (LOCATION + STRING) + 3 + outer, outer, inner];
        assert_eq!(counted.iter().map(|(_, largest)| *largest).collect::<Vec<_>>(), largest);
    }
}
