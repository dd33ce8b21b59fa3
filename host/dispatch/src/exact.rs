//! Comparing and quoting JSON exactly. A floating-point number would show an approver other digits than the guest gets,
//! and hide an edit after the sixteenth digit. So numbers are kept as they were written, and two numbers are equal only
//! if they are written the same.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Texts that are nested deeper than this count as different. Schema checks refuse them anyway.
const DEEPEST: usize = 128;

/// A JSON value with its numbers as texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exact {
    /// `null`, `true`, `false` or a number, as written.
    Literal(String),
    /// A string, decoded.
    Text(String),
    /// An array.
    Array(Vec<Self>),
    /// An object. The order of its members does not matter.
    Object(BTreeMap<String, Self>),
}

impl Exact {
    /// Reads a JSON text; `None` if it is not JSON, too deep, or has duplicate keys.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // One pass checks that it is JSON, whatever its depth. A second pass reads each byte once more.
        let whole: &RawValue = serde_json::from_str(text).ok()?;
        Reader { rest: whole.get() }.value(DEEPEST)
    }

    /// The value at a JSON Pointer (RFC 6901).
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |value, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match value {
                Self::Object(members) => members.get(&step),
                Self::Array(items) => items.get(step.parse::<usize>().ok()?),
                Self::Literal(_) | Self::Text(_) => None,
            }
        })
    }

    /// Compact JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let quoted = |text: &String| serde_json::Value::from(text.as_str()).to_string();
        match self {
            Self::Literal(text) => text.clone(),
            Self::Text(text) => quoted(text),
            Self::Array(items) => format!("[{}]", items.iter().map(Self::to_json).collect::<Vec<_>>().join(",")),
            Self::Object(members) => {
                let member = |(name, value): (&String, &Self)| format!("{}:{}", quoted(name), value.to_json());
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Reads a text that is known to be JSON, in one pass.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// The value that begins here, unless it is too deep.
    fn value(&mut self, deepest: usize) -> Option<Exact> {
        let deeper = deepest.checked_sub(1)?;
        match self.peek()? {
            b'"' => self.text().map(Exact::Text),
            b'[' => self.array(deeper),
            b'{' => self.object(deeper),
            _ => {
                let is_end = |c: char| matches!(c, ',' | ']' | '}') || c.is_ascii_whitespace();
                let end = self.rest.find(is_end).unwrap_or(self.rest.len());
                Some(Exact::Literal(self.take(end)?.to_owned()))
            }
        }
    }

    fn array(&mut self, deepest: usize) -> Option<Exact> {
        let mut items = Vec::new();
        self.skip(b'[')?;
        while self.goes_on(b']')? {
            items.push(self.value(deepest)?);
        }
        Some(Exact::Array(items))
    }

    fn object(&mut self, deepest: usize) -> Option<Exact> {
        let mut members = BTreeMap::new();
        self.skip(b'{')?;
        while self.goes_on(b'}')? {
            self.peek()?;
            let name = self.text()?;
            self.skip(b':')?;
            // Two readers may read a duplicate key in two ways.
            if members.insert(name, self.value(deepest)?).is_some() {
                return None;
            }
        }
        Some(Exact::Object(members))
    }

    /// Whether another item comes before this end. Takes the end, and the comma before another item.
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        match self.peek()? {
            found if found == end => self.skip(end).map(|()| false),
            b',' => self.skip(b',').map(|()| true),
            _ => Some(true),
        }
    }

    /// The string that begins here, decoded.
    fn text(&mut self) -> Option<String> {
        let mut bytes = self.rest.bytes().enumerate().skip(1);
        let end = loop {
            match bytes.next()? {
                (_, b'\\') => drop(bytes.next()?),
                (at, b'"') => break at + 1,
                _ => {}
            }
        };
        serde_json::from_str(self.take(end)?).ok()
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.bytes().next()
    }

    fn skip(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.take(1)).flatten().map(drop)
    }

    fn take(&mut self, length: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

/// Whether two texts are the same JSON value. White space and the order of members do not matter.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one == other || matches!((Exact::parse(one), Exact::parse(other)), (Some(one), Some(other)) if one == other)
}

/// The digest of what makes two calls the same to a person: the arguments as a value, the component and the
/// declaration.
pub(crate) fn alike(pinned: &domain::Pinned, arguments: &domain::Json) -> domain::Digest {
    let value = Exact::parse(arguments.as_str()).map(|value| value.to_json());
    let text = value.as_deref().unwrap_or(arguments.as_str());
    domain::Digest::of_parts(&[text.as_bytes(), pinned.component.as_bytes(), pinned.declaration.as_bytes()])
}

/// The members that differ between two objects: changed, added or removed. `None` if either text is not an object.
pub(crate) fn changed_members(before: &str, after: &str) -> Option<Vec<String>> {
    let (Some(Exact::Object(before)), Some(Exact::Object(after))) = (Exact::parse(before), Exact::parse(after)) else {
        return None;
    };
    let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(*value)).map(|(name, _)| name);
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    Some(changed.chain(removed).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_matters_and_white_space_and_order_do_not() {
        assert!(same(r#"{"a":1,"b":[true,"ü"]}"#, r#" { "b" : [ true , "\u00fc" ], "a" : 1 } "#));
        assert!(!same(r#"{"n":12345678901234567890.123}"#, r#"{"n":12345678901234567890.124}"#));
        assert!(!same("1", "1.0"));
        assert!(same("not json", "not json"));
        assert!(!same("not json", "nor this"));
    }

    #[test]
    fn an_edit_names_what_it_changes_adds_and_removes() {
        let names = changed_members(r#"{"a":1,"b":2,"c":{"x":1}}"#, r#"{"a":1,"c":{"x":2},"d":0}"#);
        assert_eq!(names, Some(vec!["c".into(), "d".into(), "b".into()]));
        assert_eq!(changed_members("{}", "[]"), None);
    }

    #[test]
    fn duplicate_keys_are_refused() {
        assert_eq!(Exact::parse(r#"{"a":1,"a":2}"#), None);
        assert_eq!(changed_members(r#"{"a":1}"#, r#"{"a":1,"a":1}"#), None);
    }

    #[test]
    fn a_text_that_is_too_deep_equals_nothing() {
        let deep = |n: usize, open: &str, close: &str| format!("{}0{}", open.repeat(n), close.repeat(n));
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[ ", " ]")] {
            assert!(Exact::parse(&deep(127, open, close)).is_some(), "{open}");
            assert_eq!(Exact::parse(&deep(128, open, close)), None, "{open}");
            assert_eq!(Exact::parse(&deep(100_000, open, close)), None, "{open}");
        }
    }

    #[test]
    fn values_are_read_exactly() {
        for (text, read) in [
            ("null", "null"),
            (" [ ] ", "[]"),
            ("{ }", "{}"),
            ("[1 ,2,\t-0.0e+5\n]", "[1,2,-0.0e+5]"),
            (r#"["a\\","\"]","",{"\u0022,":"[{"}]"#, r#"["a\\","\"]","",{"\",":"[{"}]"#),
            (r#"{"b":[{}],"a":{"x":[[],[0]],"\ud83d\ude00":"ü"}}"#, r#"{"a":{"x":[[],[0]],"😀":"ü"},"b":[{}]}"#),
            (r#"[true,false,null,"true"]"#, r#"[true,false,null,"true"]"#),
        ] {
            assert_eq!(Exact::parse(text).map(|value| value.to_json()).as_deref(), Some(read), "{text}");
        }
        for text in [
            "",
            " ",
            "[1,]",
            "[1 2]",
            "{\"a\" 1}",
            "{\"a\":1,}",
            "\"",
            "\"\\\"",
            "nul",
            "01",
            "1 1",
            "[",
            "\"\\ud800\"",
            "{1:2}",
        ] {
            assert_eq!(Exact::parse(text), None, "{text}");
        }
    }
}
