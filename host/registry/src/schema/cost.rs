//! What it would cost to hold a value against a schema, worked out beforehand.
//!
//! Schemas come from plugins and values from models, and the two multiply: a schema may apply thousands of schemas to each
//! place of a value, and a value has half a million places. The threads that hold them against each other must never wait,
//! so what would take long is not begun. A schema is surveyed once, into what one place costs at each depth of a value; a
//! value is then measured in one walk.

use std::collections::HashMap;

use domain::json::MAX_STORED_DEPTH;
use serde_json::Value;

use super::graph::{Graph, Nesting, children, key};
use super::pattern;

/// What a value may cost to be held against its schema. A unit is about a nanosecond in the worst admitted case; the
/// usual value of a megabyte takes a tenth of this.
pub(super) const MAX_COST: u64 = 100_000_000;

/// What it may cost for which it is told what is wrong. Telling follows every alternative to its end and writes down what
/// it finds on the way, which takes a multiple of finding out that something is.
pub(super) const MAX_DETAIL_COST: u64 = MAX_COST / 50;

/// The deepest value of which it is told what is wrong. A schema has up to a dozen schemas inside each other for one place,
/// so this bounds the stack.
pub(super) const MAX_DETAIL_DEPTH: usize = 32;

/// One keyword, one value that is compared with, or one name that is looked up.
const STEP: u64 = 20;

/// What making sure that items are unique costs for each place inside of them, and for each byte of their texts.
const UNIQUE: Rates = Rates([200, 0, 2, 0]);

/// An amount for each thing that is counted of a value: places, texts (names of members are some), bytes of texts, and
/// squares of their lengths. Saturates, so a cost over the bound stays over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rates(pub(super) [u64; 4]);

impl Rates {
    fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|n| self.0[n].saturating_add(other.0[n])))
    }

    fn most(self, other: Self) -> Self {
        Self(std::array::from_fn(|n| self.0[n].max(other.0[n])))
    }

    fn times(self, other: Self) -> u64 {
        let products = self.0.iter().zip(other.0).map(|(rate, count)| rate.saturating_mul(count));
        products.fold(0, u64::saturating_add)
    }
}

/// What is counted of a value, for each depth.
pub(super) struct Extent(Vec<Rates>);

impl Extent {
    /// Measures a value. Recurses as deeply as the value is nested.
    pub(super) fn of(value: &Value) -> Self {
        let mut extent = Self(Vec::new());
        extent.count(value, 0);
        extent
    }

    /// The nesting of the value: 0 for a scalar.
    pub(super) fn depth(&self) -> usize {
        self.0.len() - 1
    }

    fn count(&mut self, value: &Value, depth: usize) {
        self.place(depth).0[0] += 1;
        match value {
            Value::String(text) => self.text(text, depth),
            Value::Array(items) => items.iter().for_each(|item| self.count(item, depth + 1)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.text(name, depth + 1);
                    self.count(value, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, depth: usize) {
        let bytes = text.len() as u64;
        let counted = self.place(depth);
        *counted = counted.plus(Rates([0, 1, bytes, bytes.saturating_mul(bytes)]));
    }

    fn place(&mut self, depth: usize) -> &mut Rates {
        if self.0.len() <= depth {
            self.0.resize(depth + 1, Rates::default());
        }
        &mut self.0[depth]
    }
}

/// What one place costs at each depth of a value, along the most costly way there. Behind the last entry the costs are
/// those of the last.
pub(super) struct Costs(Vec<Rates>);

impl Costs {
    /// Surveys a schema that keeps the rules about references.
    pub(super) fn of(schema: &Value) -> Self {
        let survey = Survey::of(schema);
        let root = survey.nodes.len() - 1;
        let mut costs = vec![];
        let mut below = vec![Cost::default(); survey.nodes.len()];
        for depth in 0..=MAX_STORED_DEPTH {
            let level = survey.level(depth, &below);
            costs.push(level[root].holding);
            // The first two levels are special; from there on each follows from the one before alone.
            if depth > 2 && level == below {
                break;
            }
            below = level;
        }
        Self(costs)
    }

    /// What a value costs.
    pub(super) fn total(&self, extent: &Extent) -> u64 {
        let last = self.0.last().copied().unwrap_or_default();
        let rates = self.0.iter().copied().chain(std::iter::repeat(last));
        rates.zip(&extent.0).map(|(rates, counted)| rates.times(*counted)).fold(0, u64::saturating_add)
    }
}

/// What one schema costs at one depth below the place that it applies to.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Cost {
    /// Holding a value against it.
    holding: Rates,
    /// Marking what it evaluated, for an `unevaluatedProperties` or `unevaluatedItems` around it.
    marking: Rates,
}

/// A schema, and by their numbers those that it leads to.
#[derive(Default)]
struct Node {
    /// At the place itself.
    own: Rates,
    /// At each member of that place.
    members: Rates,
    is_unique: bool,
    marks: bool,
    same: Vec<usize>,
    /// Of which one applies to each member.
    named: Vec<usize>,
    inside: Vec<usize>,
}

/// The schemas of a document. The last is the whole.
struct Survey {
    nodes: Vec<Node>,
    /// Their numbers, each behind those that apply to the same place.
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

    /// Recurses through what applies to the same place, which the rules keep short and free of circles.
    fn sort(&mut self, number: usize, seen: &mut [bool]) {
        if std::mem::replace(&mut seen[number], true) {
            return;
        }
        for same in self.nodes[number].same.clone() {
            self.sort(same, seen);
        }
        self.order.push(number);
    }

    /// The costs at one depth, from those at the depth above it.
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
            own = own.plus(node.named.iter().map(|n| below[*n].holding).fold(Rates::default(), Rates::most));
            own = own.plus(node.inside.iter().map(|n| below[*n].holding).fold(Rates::default(), Rates::plus));
            let held = node.same.iter().map(|n| level[*n].holding).fold(Rates::default(), Rates::plus);
            let marked = node.same.iter().map(|n| level[*n].marking).fold(Rates::default(), Rates::plus);
            // Marking asks each alternative again whether it holds, and then what it evaluated.
            let marking = own.plus(held).plus(marked);
            let holding = own.plus(held).plus(if node.marks { marking } else { Rates::default() });
            level[number] = Cost { holding, marking };
        }
        level
    }
}

/// What the keywords of one schema cost, apart from the schemas in it.
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
            "minLength" | "maxLength" => node.own = node.own.plus(Rates([0, 0, 1, 0])),
            "pattern" => node.own = node.own.plus(value.as_str().map_or_else(Rates::default, pattern::rates)),
            "patternProperties" => {
                for name in value.as_object().into_iter().flat_map(|map| map.keys()) {
                    node.members = node.members.plus(pattern::rates(name));
                }
            }
            "additionalProperties" => node.members = node.members.plus(Rates([STEP, 0, 0, 0])),
            "uniqueItems" => node.is_unique = value == &Value::Bool(true),
            "unevaluatedProperties" | "unevaluatedItems" => node.marks = true,
            _ => {}
        }
        node.own = node.own.plus(Rates([steps * STEP, 0, 0, 0]));
    }
    node.members = node.members.plus(Rates([STEP, 0, 0, 0]));
    node
}

/// The values in a value: itself, and everything inside of it.
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

    /// What one place costs at each depth, in steps.
    fn steps(schema: &Value, depths: usize) -> Vec<u64> {
        let Costs(costs) = Costs::of(schema);
        let last = costs[costs.len() - 1];
        costs.into_iter().chain(std::iter::repeat(last)).take(depths).map(|rates| rates.0[0] / STEP).collect()
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
        assert_eq!(counted.into_iter().map(|rates| rates.0).collect::<Vec<_>>(), expected);
    }
}
