//! Comparing JSON exactly. White space and the order of members do not matter; every digit of a number does.

use domain::Json;
use domain::json::Value;

/// Whether two texts are the same JSON value. A text that cannot be read equals only itself.
#[must_use]
pub fn same(one: &Json, other: &Json) -> bool {
    one == other || matches!((one.value(), other.value()), (Ok(one), Ok(other)) if one == other)
}

/// The digest of what makes two calls the same to a person: the arguments as a value, the component and the
/// declaration.
pub(crate) fn alike(pinned: &domain::call::Pinned, arguments: &Json) -> domain::Digest {
    let value = arguments.value().map(|value| value.to_json());
    let text = value.as_deref().unwrap_or(arguments.as_str());
    domain::Digest::of_parts(&[text.as_bytes(), pinned.component.as_bytes(), pinned.declaration.as_bytes()])
}

/// The members that differ between two objects: changed, added or removed. `None` if either text is not an object.
#[must_use]
pub fn changed_members(before: &Json, after: &Json) -> Option<Vec<String>> {
    let (before, after) = (before.value().ok()?, after.value().ok()?);
    let (Value::Object(before), Value::Object(after)) = (before.as_ref(), after.as_ref()) else { return None };
    let (before, after) = (before.sorted(), after.sorted());
    let find = |all: &[(&str, &Value)], name: &str| all.binary_search_by_key(&name, |(known, _)| known).ok();
    let is_changed = |(name, value): &&(&str, &Value)| {
        find(&before, name).and_then(|at| before.get(at)).is_none_or(|(_, known)| known != value)
    };
    let changed = after.iter().filter(is_changed);
    let removed = before.iter().filter(|(name, _)| find(&after, name).is_none());
    Some(changed.chain(removed).map(|(name, _)| (*name).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_same(one: &str, other: &str) -> bool {
        same(&Json::unchecked(one), &Json::unchecked(other))
    }

    fn changed(before: &str, after: &str) -> Option<Vec<String>> {
        changed_members(&Json::unchecked(before), &Json::unchecked(after))
    }

    #[test]
    fn every_digit_matters_and_white_space_and_order_do_not() {
        assert!(are_same(r#"{"a":1,"b":[true,"ü"]}"#, r#" { "b" : [ true , "\u00fc" ], "a" : 1 } "#));
        assert!(!are_same(r#"{"n":12345678901234567890.123}"#, r#"{"n":12345678901234567890.124}"#));
        assert!(!are_same("1", "1.0"));
        assert!(are_same("not json", "not json"));
        assert!(!are_same("not json", "nor this"));
    }

    #[test]
    fn an_edit_names_what_it_changes_adds_and_removes() {
        let names = changed(r#"{"a":1,"b":2,"c":{"x":1}}"#, r#"{"a":1,"c":{"x":2},"d":0}"#);
        assert_eq!(names, Some(vec!["c".into(), "d".into(), "b".into()]));
        assert_eq!(changed("{}", "[]"), None);
    }

    #[test]
    fn duplicate_keys_equal_nothing() {
        assert!(!are_same(r#"{"a":1,"a":2}"#, r#"{"a":1, "a":2}"#));
        assert_eq!(changed(r#"{"a":1}"#, r#"{"a":1,"a":1}"#), None);
    }

    #[test]
    fn a_text_that_is_too_deep_equals_nothing() {
        let deep = |n: usize, open: &str, close: &str| format!("{}0{}", open.repeat(n), close.repeat(n));
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[ ", " ]")] {
            let is_read = |n| are_same(&deep(n, open, close), &format!(" {}", deep(n, open, close)));
            assert!(is_read(127), "{open}");
            assert!(!is_read(128), "{open}");
            assert!(!is_read(100_000), "{open}");
        }
    }
}
