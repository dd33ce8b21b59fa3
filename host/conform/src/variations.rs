//! Makes arguments from others: some break the schema, some are valid but unusual.

use serde_json::{Map, Value, json};

/// Characters that programs often mishandle: beyond 16 bits, joined, combining, right to left, invisible, the last code
/// point, and a zero byte.
pub(crate) const CHARACTERS: &str = "Ünïcødé \u{1f469}\u{200d}\u{1f680} e\u{301} \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{65e5}\u{672c} \u{0} \u{feff} \u{10ffff}";

/// Numbers at the limits of common number types.
pub(crate) fn numbers() -> [Value; 8] {
    [
        json!(0),
        json!(-1),
        json!(0.1),
        json!(9_007_199_254_740_993_u64),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e308),
        json!(5e-324),
    ]
}

/// Omits each member, and replaces each by values of other types.
pub(crate) fn broken(sample: &Value) -> Vec<Value> {
    let Value::Object(members) = sample else { return Vec::new() };
    let mut broken = vec![json!({})];
    for (name, value) in members {
        let mut without = members.clone();
        without.shift_remove(name);
        broken.push(Value::Object(without));
        for other in [json!(null), json!(7), json!("seven"), json!([]), json!({"seven": 7})] {
            if std::mem::discriminant(&other) != std::mem::discriminant(value) {
                broken.push(with(members, name, other));
            }
        }
    }
    broken.push(with(members, "no_such_argument_of_the_kit", json!(1)));
    broken
}

fn with(members: &Map<String, Value>, name: &str, value: Value) -> Value {
    let mut members = members.clone();
    members.insert(name.to_owned(), value);
    Value::Object(members)
}

/// The value with all applicable leaves changed, and then with each alone. Empty if `change` applies to none.
pub(crate) fn changed(sample: &Value, change: &dyn Fn(&Value) -> Option<Value>) -> Vec<Value> {
    (0..places(sample, change)).map(|place| changed_at(sample, change, place)).collect()
}

/// The number of values that `changed` returns.
pub(crate) fn places(sample: &Value, change: &dyn Fn(&Value) -> Option<Value>) -> usize {
    match leaves(sample, change) {
        several @ 2.. => several + 1,
        count => count,
    }
}

/// One of the values that `changed` returns.
pub(crate) fn changed_at(sample: &Value, change: &dyn Fn(&Value) -> Option<Value>, place: usize) -> Value {
    let first = usize::from(leaves(sample, change) > 1);
    altered(sample, change, &mut |n| place < first || n + first == place, &mut 0)
}

fn leaves(value: &Value, change: &dyn Fn(&Value) -> Option<Value>) -> usize {
    if change(value).is_some() {
        return 1;
    }
    match value {
        Value::Array(items) => items.iter().map(|item| leaves(item, change)).sum(),
        Value::Object(members) => members.values().map(|member| leaves(member, change)).sum(),
        _ => 0,
    }
}

fn altered(
    value: &Value,
    change: &dyn Fn(&Value) -> Option<Value>,
    wanted: &mut dyn FnMut(usize) -> bool,
    seen: &mut usize,
) -> Value {
    if let Some(new) = change(value) {
        *seen += 1;
        return if wanted(*seen - 1) { new } else { value.clone() };
    }
    match value {
        Value::Array(items) => items.iter().map(|item| altered(item, change, wanted, seen)).collect(),
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| (name.clone(), altered(member, change, wanted, seen));
            Value::Object(members.iter().map(member).collect())
        }
        other => other.clone(),
    }
}

/// The number of values inside a value, itself included.
pub(crate) fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum(),
        _ => 0,
    }
}

pub(crate) fn text(value: &Value, new: &str) -> Option<Value> {
    value.is_string().then(|| json!(new))
}

pub(crate) fn number(value: &Value, new: &Value) -> Option<Value> {
    value.is_number().then(|| new.clone())
}

/// Replaces a text or a list by an empty one.
pub(crate) fn empty(value: &Value) -> Option<Value> {
    match value {
        Value::String(_) => Some(json!("")),
        Value::Array(_) => Some(json!([])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_changed_together_and_one_by_one() {
        let sample = json!({"a": "x", "b": [{"c": "y"}, 1]});
        let made = changed(&sample, &|value| text(value, "!"));
        let expected = [
            json!({"a": "!", "b": [{"c": "!"}, 1]}),
            json!({"a": "!", "b": [{"c": "y"}, 1]}),
            json!({"a": "x", "b": [{"c": "!"}, 1]}),
        ];
        assert_eq!(made, expected);
        assert_eq!(changed(&json!({"a": 1}), &|value| text(value, "!")), Vec::<Value>::new());
    }

    #[test]
    fn each_member_is_left_out_and_replaced() {
        let made = broken(&json!({"a": "x"}));
        assert!(made.contains(&json!({})) && made.contains(&json!({"a": 7})) && made.contains(&json!({"a": null})));
        assert!(!made.contains(&json!({"a": "seven"})), "a text for a text breaks nothing");
        assert_eq!(made.len(), 7);
    }
}
