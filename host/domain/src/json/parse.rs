//! The one parser of calls' JSON. In one pass it checks syntax, depth, duplicate keys and the range of numbers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use super::{MAX_DEPTH, MAX_STORED_DEPTH, pointer_step};
use crate::Violation;

/// Objects with more members find duplicate keys with a hash table.
const MAX_SCANNED: usize = 16;

/// The maximum length of a name or pointer that an error quotes, in bytes.
const MAX_QUOTED: usize = 256;

/// Builds an output from the parts of a text.
pub(super) trait Visit<'a> {
    type Out;
    fn literal(&mut self, text: &'a str) -> Self::Out;
    fn text(&mut self, text: Cow<'a, str>) -> Self::Out;
    fn array(&mut self, items: Vec<Self::Out>) -> Self::Out;
    fn object(&mut self, members: Vec<(Cow<'a, str>, Self::Out)>) -> Self::Out;
}

/// Keeps nothing but the members of the outermost object, which is the last to end. Its output says what is `null`.
#[derive(Default)]
pub(super) struct Check<'a> {
    pub(super) members: Option<Vec<(Cow<'a, str>, bool)>>,
}

impl<'a> Visit<'a> for Check<'a> {
    type Out = bool;

    fn literal(&mut self, text: &'a str) -> bool {
        text == "null"
    }

    fn text(&mut self, _: Cow<'a, str>) -> bool {
        false
    }

    fn array(&mut self, _: Vec<bool>) -> bool {
        false
    }

    fn object(&mut self, members: Vec<(Cow<'a, str>, bool)>) -> bool {
        self.members = Some(members);
        false
    }
}

/// Why a text is not JSON that the host accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    fault: Fault,
    line: usize,
    column: usize,
    /// Where a duplicate key is.
    pointer: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    Syntax(&'static str),
    /// The text ends before its value does.
    CutOff(&'static str),
    TooDeep(usize),
    Twice(String),
}

impl Malformed {
    /// Whether an object has a key twice.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        matches!(self.fault, Fault::Twice(_))
    }

    /// Whether the text ends before its value does.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        matches!(self.fault, Fault::CutOff(_))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Fault::Syntax(what) | Fault::CutOff(what) => f.write_str(what)?,
            Fault::TooDeep(limit) => write!(f, "nested deeper than {limit} levels")?,
            Fault::Twice(name) => write!(f, "duplicate key {name:?}")?,
        }
        write!(f, " at line {} column {}", self.line, self.column)
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for Violation {
    fn from(malformed: Malformed) -> Self {
        let message = match &malformed.fault {
            Fault::Syntax(_) | Fault::CutOff(_) => format!("not valid JSON: {malformed}"),
            Fault::TooDeep(_) => malformed.to_string(),
            Fault::Twice(_) => "duplicate key; programs disagree about which value applies".to_owned(),
        };
        Self { pointer: malformed.pointer, message }
    }
}

/// The path to a value: the names of members, and `*` for each item of an array.
pub type ValuePath = &'static [&'static str];

/// Reads a text from its beginning.
pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    limit: usize,
    /// Whether numbers beyond the range of a double are refused.
    bounds_numbers: bool,
    refuses_duplicates: bool,
    /// The paths from here to values whose duplicate keys are accepted.
    excepted: Vec<ValuePath>,
    depth: usize,
    max: usize,
    /// The pointer to a duplicate key, built from its end on the way out.
    pointer: String,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, limit: usize) -> Self {
        Self {
            text,
            at: 0,
            limit,
            bounds_numbers: true,
            refuses_duplicates: true,
            excepted: Vec::new(),
            depth: 0,
            max: 0,
            pointer: String::new(),
        }
    }

    /// For a text that an older version may have stored: deeper, and with numbers of any size.
    pub(super) fn stored(text: &'a str) -> Self {
        Self { bounds_numbers: false, ..Self::new(text, MAX_STORED_DEPTH) }
    }

    /// For a body whose reader checks the values at these paths itself.
    pub(super) fn body(text: &'a str, limit: usize, excepted: &[ValuePath]) -> Self {
        Self { excepted: excepted.to_vec(), ..Self::new(text, limit) }
    }

    /// For a reader that reports every duplicate key.
    pub(super) fn with_duplicates(text: &'a str) -> Self {
        Self { refuses_duplicates: false, ..Self::new(text, MAX_DEPTH) }
    }

    /// The one value of the text, and how deep it is nested.
    pub(super) fn whole<V: Visit<'a>>(mut self, visit: &mut V) -> Result<(V::Out, usize), Malformed> {
        let read = self.value(visit).and_then(|value| match self.peek() {
            None => Ok(value),
            Some(_) => Err(Fault::Syntax("more text follows the value")),
        });
        read.map(|value| (value, self.max)).map_err(|fault| self.malformed(fault))
    }

    fn malformed(self, fault: Fault) -> Malformed {
        let at = if matches!(fault, Fault::Syntax(_) | Fault::CutOff(_)) { self.at + 1 } else { self.at };
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
        Malformed { fault, line, column, pointer: self.pointer }
    }

    fn value<V: Visit<'a>>(&mut self, visit: &mut V) -> Result<V::Out, Fault> {
        match self.peek() {
            None => Err(Fault::CutOff("a value is missing")),
            Some(b'"') => self.string().map(|text| visit.text(text)),
            Some(b'[') => self.array(visit),
            Some(b'{') => self.object(visit),
            Some(b't') => self.word("true").map(|word| visit.literal(word)),
            Some(b'f') => self.word("false").map(|word| visit.literal(word)),
            Some(b'n') => self.word("null").map(|word| visit.literal(word)),
            Some(b'-' | b'0'..=b'9') => self.number().map(|number| visit.literal(number)),
            Some(_) => Err(Fault::Syntax("no JSON value begins like this")),
        }
    }

    fn array<V: Visit<'a>>(&mut self, visit: &mut V) -> Result<V::Out, Fault> {
        const EOF: Fault = Fault::CutOff("the text ends inside an array");
        self.enter()?;
        let mut items = Vec::new();
        if self.peek().ok_or(EOF)? == b']' {
            return Ok(self.leave(|| visit.array(items)));
        }
        loop {
            let item = self.below(visit, "*").inspect_err(|fault| self.inside(fault, &items.len().to_string()))?;
            items.push(item);
            match self.peek().ok_or(EOF)? {
                b']' => return Ok(self.leave(|| visit.array(items))),
                b',' => self.at += 1,
                _ => return Err(Fault::Syntax("`,` or `]` is missing")),
            }
            if self.peek() == Some(b']') {
                return Err(Fault::Syntax("`]` follows a comma"));
            }
        }
    }

    fn object<V: Visit<'a>>(&mut self, visit: &mut V) -> Result<V::Out, Fault> {
        const EOF: Fault = Fault::CutOff("the text ends inside an object");
        self.enter()?;
        let (mut members, mut names) = (Vec::new(), HashSet::new());
        if self.peek().ok_or(EOF)? == b'}' {
            return Ok(self.leave(|| visit.object(members)));
        }
        loop {
            match self.peek().ok_or(EOF)? {
                b'"' => {}
                b'}' => return Err(Fault::Syntax("`}` follows a comma")),
                _ => return Err(Fault::Syntax("a key must be in double quotes")),
            }
            let name = self.string()?;
            if self.refuses_duplicates {
                self.unique(name.clone(), &members, &mut names)?;
            }
            match self.peek().ok_or(EOF)? {
                b':' => self.at += 1,
                _ => return Err(Fault::Syntax("`:` is missing")),
            }
            let value = self.below(visit, &name).inspect_err(|fault| self.inside(fault, &name))?;
            members.push((name, value));
            match self.peek().ok_or(EOF)? {
                b'}' => return Ok(self.leave(|| visit.object(members))),
                b',' => self.at += 1,
                _ => return Err(Fault::Syntax("`,` or `}` is missing")),
            }
        }
    }

    /// The value one step below.
    fn below<V: Visit<'a>>(&mut self, visit: &mut V, step: &str) -> Result<V::Out, Fault> {
        if self.excepted.is_empty() {
            return self.value(visit);
        }
        let steps = self.excepted.iter().filter_map(|path| path.split_first());
        let excepted = steps.filter(|(first, _)| **first == step).map(|(_, rest)| rest).collect();
        let outer = (std::mem::replace(&mut self.excepted, excepted), self.refuses_duplicates);
        self.refuses_duplicates &= !self.excepted.iter().any(|rest| rest.is_empty());
        let value = self.value(visit)?;
        (self.excepted, self.refuses_duplicates) = outer;
        Ok(value)
    }

    /// Refuses a name that the object has already: two readers may take different values.
    fn unique<T>(
        &mut self,
        name: Cow<'a, str>,
        members: &[(Cow<'a, str>, T)],
        names: &mut HashSet<Cow<'a, str>>,
    ) -> Result<(), Fault> {
        let is_new = if members.len() < MAX_SCANNED {
            members.iter().all(|(known, _)| *known != name)
        } else {
            if names.is_empty() {
                names.extend(members.iter().map(|(known, _)| known.clone()));
            }
            !names.contains(&name)
        };
        if !is_new {
            let fault = Fault::Twice(beginning(&name).to_owned());
            self.inside(&fault, &name);
            return Err(fault);
        }
        if !names.is_empty() {
            names.insert(name);
        }
        Ok(())
    }

    /// Puts a step in front of the pointer to a duplicate key.
    fn inside(&mut self, fault: &Fault, step: &str) {
        if matches!(fault, Fault::Twice(_)) {
            let step = pointer_step(beginning(step));
            let pointer = format!("/{step}{}", self.pointer);
            self.pointer = beginning(&pointer).to_owned();
        }
    }

    /// The string that begins here, decoded.
    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.at += 1;
        let (text, mut begin) = (self.text, self.at);
        let mut decoded: Option<String> = None;
        loop {
            match self.byte() {
                None => return Err(Fault::CutOff("the text ends inside a string")),
                Some(b'"') => {
                    let rest = &text[begin..self.at];
                    self.at += 1;
                    return Ok(match decoded {
                        None => Cow::Borrowed(rest),
                        Some(decoded) => Cow::Owned(decoded + rest),
                    });
                }
                Some(b'\\') => {
                    let decoded = decoded.get_or_insert_default();
                    decoded.push_str(&text[begin..self.at]);
                    self.at += 1;
                    decoded.push(self.escape()?);
                    begin = self.at;
                }
                Some(..b' ') => return Err(Fault::Syntax("a control character in a string must be escaped")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let decoded = match self.byte().ok_or(Fault::CutOff("the text ends inside a string"))? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(Fault::Syntax("invalid escape")),
        };
        self.at += 1;
        Ok(decoded)
    }

    /// Decodes `uXXXX`, or the two of a surrogate pair.
    fn unicode(&mut self) -> Result<char, Fault> {
        const LONE: Fault = Fault::Syntax("lone surrogate in an escape");
        let first = self.hex()?;
        let code = match first {
            0xd800..=0xdbff => {
                if !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
                    return Err(LONE);
                }
                self.at += 1;
                let second = self.hex()?.checked_sub(0xdc00).filter(|low| *low < 0x400).ok_or(LONE)?;
                0x10000 + ((first - 0xd800) << 10) + second
            }
            code => code,
        };
        char::from_u32(code).ok_or(LONE)
    }

    /// The four digits after a `u`.
    fn hex(&mut self) -> Result<u32, Fault> {
        let digits = self.text.as_bytes().get(self.at + 1..self.at + 5).unwrap_or_default();
        let code = digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?));
        self.at += 5;
        code.filter(|_| digits.len() == 4).ok_or(Fault::Syntax("invalid escape"))
    }

    fn word(&mut self, word: &str) -> Result<&'a str, Fault> {
        let (text, begin) = (self.text, self.at);
        if !text[begin..].starts_with(word) {
            return Err(Fault::Syntax("no JSON value begins like this"));
        }
        self.at += word.len();
        Ok(&text[begin..self.at])
    }

    fn number(&mut self) -> Result<&'a str, Fault> {
        let (text, begin) = (self.text, self.at);
        self.skip(b"-");
        if self.byte() == Some(b'0') {
            self.at += 1;
            if matches!(self.byte(), Some(b'0'..=b'9')) {
                return Err(Fault::Syntax("invalid number"));
            }
        } else {
            self.digits()?;
        }
        if self.skip(b".") {
            self.digits()?;
        }
        let has_exponent = self.skip(b"eE");
        if has_exponent {
            self.skip(b"+-");
            self.digits()?;
        }
        let number = &text[begin..self.at];
        let may_overflow = has_exponent || number.len() > 300;
        if may_overflow && !number.parse::<f64>().is_ok_and(f64::is_finite) {
            if self.bounds_numbers {
                return Err(Fault::Syntax("the number is too large"));
            }
            // The text is readable, and it must not count as checked.
            self.max = self.max.max(MAX_DEPTH + 1);
        }
        Ok(number)
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let begin = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == begin { Err(Fault::Syntax("invalid number")) } else { Ok(()) }
    }

    /// Takes one byte if it is one of these.
    fn skip(&mut self, any: &[u8]) -> bool {
        let is_one = self.byte().is_some_and(|byte| any.contains(&byte));
        self.at += usize::from(is_one);
        is_one
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Takes the bracket that opens an array or object.
    fn enter(&mut self) -> Result<(), Fault> {
        self.at += 1;
        self.depth += 1;
        self.max = self.max.max(self.depth);
        if self.depth > self.limit { Err(Fault::TooDeep(self.limit)) } else { Ok(()) }
    }

    /// Takes the bracket that closes it.
    fn leave<T>(&mut self, end: impl FnOnce() -> T) -> T {
        self.at += 1;
        self.depth -= 1;
        end()
    }
}

pub(super) fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_QUOTED)]
}

#[cfg(test)]
mod tests {
    use crate::Violation;
    use crate::json::Json;

    #[test]
    fn faults_say_what_and_where() {
        for (text, expected) in [
            ("", "a value is missing at line 1 column 0"),
            ("{", "the text ends inside an object at line 1 column 1"),
            ("[1,\n 2", "the text ends inside an array at line 2 column 2"),
            ("\"a", "the text ends inside a string at line 1 column 2"),
            ("{}\n{}", "more text follows the value at line 2 column 1"),
            ("[1 2]", "`,` or `]` is missing at line 1 column 4"),
            ("[1,]", "`]` follows a comma at line 1 column 4"),
            ("{a:1}", "a key must be in double quotes at line 1 column 2"),
            ("{\"a\" 1}", "`:` is missing at line 1 column 6"),
            ("nul", "no JSON value begins like this at line 1 column 1"),
            ("'a'", "no JSON value begins like this at line 1 column 1"),
            ("01", "invalid number at line 1 column 2"),
            ("1e999", "the number is too large at line 1 column 5"),
            ("\"\n\"", "a control character in a string must be escaped at line 2 column 0"),
            ("\"\\ud800\"", "lone surrogate in an escape at line 1 column 8"),
            ("\"\\x\"", "invalid escape at line 1 column 3"),
            ("{\"x\":1,\"\\u0078\":2}", "duplicate key \"x\" at line 1 column 15"),
        ] {
            assert_eq!(
                Json::parse(text).map_err(|malformed| malformed.to_string()),
                Err(expected.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn duplicate_keys_have_a_pointer() {
        let many: String = (0..100).map(|n| format!("\"{n}\":0,")).collect();
        for (text, pointer) in [
            (r#"{"a":[{"x/y":1,"x/y":2}]}"#.to_owned(), "/a/0/x~1y".to_owned()),
            (format!("{{{many}\"a\":{{{many}\"7\":1}}}}"), "/a/7".to_owned()),
            (format!("{{{many}\"7\":1}}"), "/7".to_owned()),
            (format!(r#"{{"{0}":{{"a":0,"a":0}}}}"#, "ü".repeat(1_000)), format!("/{}", "ü".repeat(127))),
        ] {
            let violation = Json::unchecked(text.as_str()).check().map_err(Violation::from).unwrap_err();
            assert_eq!(violation.pointer, pointer);
        }
    }
}
