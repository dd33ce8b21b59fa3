//! Reads what `strace` writes.

use std::collections::HashMap;

/// A system call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    /// Between the parentheses.
    pub(super) arguments: &'a str,
    /// After the equals sign. A call without a result was going on when its process was killed. It may have had its effect.
    pub(super) result: Option<&'a str>,
    /// The line of its beginning.
    pub(super) begun: usize,
    /// The line of its end. A call without a result ends with the last line.
    pub(super) ended: usize,
}

impl Call<'_> {
    /// The returned number, if the call succeeded.
    pub(super) fn returned(&self) -> Option<usize> {
        let digits = self.result?.split(|byte: char| !byte.is_ascii_digit()).next()?;
        digits.parse().ok()
    }
}

/// The calls of a trace, in the order in which they began.
pub(super) fn calls(trace: &str) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::new();
    // The unfinished call of each thread.
    let mut unfinished: HashMap<&str, usize> = HashMap::new();
    let last = trace.lines().count().saturating_sub(1);
    for (number, line) in trace.lines().enumerate() {
        let Some((thread, line)) = line.split_once(' ') else { continue };
        let line = line.trim_start();
        if let Some(resumed) = line.strip_prefix("<... ") {
            let call = unfinished.remove(thread).and_then(|call| calls.get_mut(call));
            if let (Some(call), Some(result)) = (call, result(resumed)) {
                (call.result, call.ended) = (Some(result), number);
            }
            continue;
        }
        let Some((name, rest)) = line.split_once('(') else { continue };
        if let Some(arguments) = rest.strip_suffix(" <unfinished ...>") {
            unfinished.insert(thread, calls.len());
            calls.push(Call { name, arguments, result: None, begun: number, ended: last });
        } else if let Some((arguments, _)) = rest.rsplit_once(" = ") {
            let arguments = arguments.trim_end().trim_end_matches(')');
            let result = result(rest);
            calls.push(Call { name, arguments, result, begun: number, ended: result.map_or(last, |_| number) });
        }
    }
    calls
}

/// The result at the end of a line. `strace` writes a question mark if the process was killed first.
fn result(line: &str) -> Option<&str> {
    line.rsplit_once(" = ").map(|(_, result)| result).filter(|result| *result != "?")
}

/// The number of a file descriptor at the beginning of arguments, and the arguments after it.
pub(super) fn descriptor(arguments: &str) -> Option<(usize, &str)> {
    let digits = arguments.find(|byte: char| !byte.is_ascii_digit()).unwrap_or(arguments.len());
    let number = arguments[..digits].parse().ok()?;
    let rest = &arguments[digits..];
    let rest = if rest.starts_with('<') { rest.split_once('>')?.1 } else { rest };
    Some((number, rest.strip_prefix(", ").unwrap_or(rest)))
}

/// The content of the first quoted string, and the arguments after it.
pub(super) fn quoted(arguments: &str) -> Option<(Vec<u8>, &str)> {
    let bytes = arguments.as_bytes();
    let mut at = bytes.iter().position(|byte| *byte == b'"')? + 1;
    let mut content = Vec::new();
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((content, arguments[at + 1..].trim_start_matches(", "))),
            b'\\' => {
                let escaped = *bytes.get(at + 1)?;
                at += 2;
                content.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'0'..=b'7' => {
                        let mut octal = u32::from(escaped - b'0');
                        // At most three digits.
                        let end = at + 2;
                        while at < end && bytes.get(at).is_some_and(|digit| (b'0'..=b'7').contains(digit)) {
                            octal = octal * 8 + u32::from(bytes[at] - b'0');
                            at += 1;
                        }
                        u8::try_from(octal).ok()?
                    }
                    other => other,
                });
            }
            other => {
                content.push(other);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_two_lines_are_joined() {
        let trace = "7  pwrite64(3</d/db>, \"a\\0\\17b\\\"\", 5, 8 <unfinished ...>\n\
                     8  fsync(4</d>)   = 0\n\
                     7  <... pwrite64 resumed>)           = 5\n\
                     7  write(1<pipe:[5]>, \"x = (y)\\n\", 8) = 8\n\
                     8  fdatasync(3</d/db> <unfinished ...>\n\
                     7  ftruncate(3</d/db>, 9) = ?\n\
                     8  <... fdatasync resumed>) = ?\n";
        let calls = calls(trace);
        let seen: Vec<_> = calls.iter().map(|call| (call.name, call.begun, call.ended, call.returned())).collect();
        let expected = [
            ("pwrite64", 0, 2, Some(5)),
            ("fsync", 1, 1, Some(0)),
            ("write", 3, 3, Some(8)),
            ("fdatasync", 4, 6, None),
            ("ftruncate", 5, 6, None),
        ];
        assert_eq!(seen, expected);
        let (descriptor, rest) = descriptor(calls[0].arguments).unwrap();
        assert_eq!((descriptor, quoted(rest)), (3, Some((b"a\0\x0fb\"".to_vec(), "5, 8"))));
        assert_eq!(quoted(calls[2].arguments), Some((b"x = (y)\n".to_vec(), "8")));
    }
}
