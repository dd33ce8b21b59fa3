//! Attacks by requests of several principals, one after the other or concurrently, with the expected responses. `$word`
//! in a path or a body is replaced by a value that an earlier step kept.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::case::{Case, cut};
use super::field::{CALLERS, Field};
use super::files;
use super::step::{Step, Verb, repeated};
use crate::guests::fixture;
use crate::http::Client;

/// The time limit of a response to raw bytes. Only a host that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time between two looks at connections that are held.
const PAUSE: Duration = Duration::from_millis(20);

/// A smaller body is sent again if the connection breaks. The host may refuse a larger one without reading it.
const KEPT: usize = 64 << 10;

type Words = BTreeMap<String, String>;

/// Runs all steps.
pub(super) fn carry_out(steps: &[Step], field: &Field, case: &Case, round: u32) -> Result<()> {
    let mut words = Words::from([
        ("plugin".into(), case.plugin_name()),
        ("tool".into(), case.tool_name()),
        ("round".into(), round.to_string()),
        ("admin".into(), field.host().admin.token().to_owned()),
        ("server".into(), field.filled("$server")),
    ]);
    for (n, step) in steps.iter().enumerate().filter(|(_, step)| !step.once || round == 1) {
        step.carry_out(field, &mut words, round).with_context(|| format!("step {}", n + 1))?;
    }
    Ok(())
}

/// Replaces the known words. The longest come first, because a word can be the beginning of another.
fn filled(text: &str, words: &Words) -> String {
    let mut known: Vec<_> = words.iter().collect();
    known.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    known.iter().fold(repeated(text), |text, (word, value)| text.replace(&format!("${word}"), value))
}

impl Step {
    fn carry_out(&self, field: &Field, words: &mut Words, round: u32) -> Result<()> {
        if let Verb::Hold(bytes) = self.verb()? {
            return if round == 1 { self.hold(field, bytes, words) } else { Ok(()) };
        }
        ensure!(!self.status.is_empty() || !self.exactly.is_empty(), "a step says what it is answered");
        ensure!(self.leaves_ms.is_none() || matches!(self.verb()?, Verb::Ask(..)), "`leaves_ms` belongs to a request");
        let answers = self.all(field, words)?;
        let mut counted = BTreeMap::<String, usize>::new();
        for (status, text) in &answers {
            *counted.entry(status.to_string()).or_default() += 1;
            let may = self.status.contains(status) || self.exactly.contains_key(&status.to_string());
            ensure!(may, "answered {status}: {}", cut(text.clone()));
            if let Some(said) = &self.says {
                let said = filled(said, words);
                ensure!(text.contains(&said), "`{said}` is not in: {}", cut(text.clone()));
            }
            for never in &self.never {
                ensure!(!text.contains(never.as_str()), "`{never}` is in: {}", cut(text.clone()));
            }
        }
        ensure!(self.exactly.is_empty() || counted == self.exactly, "answered {counted:?}");
        let least = &self.answered;
        ensure!(has_at_least(&counted, least), "answered {counted:?}, and at least {least:?} is expected");
        for (word, pointer) in &self.keep {
            let (_, text) = answers.first().context("there was no response")?;
            let value: Value = serde_json::from_str(text)?;
            let found = value.pointer(pointer).with_context(|| format!("{pointer} is not in {text}"))?;
            words.insert(word.clone(), found.as_str().map_or_else(|| found.to_string(), str::to_owned));
        }
        Ok(())
    }

    /// Opens the connections. The host may close some of them at once.
    fn hold(&self, field: &Field, bytes: &str, words: &Words) -> Result<()> {
        let mut connections = Vec::new();
        for n in 0..self.times.unwrap_or(1) {
            let words = self.words_of(n, field, words)?;
            let mut stream = TcpStream::connect(field.host().admin.url().trim_start_matches("http://"))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            // The host may have closed it.
            let _ = stream.write_all(filled(bytes, &words).as_bytes());
            stream.set_nonblocking(true)?;
            connections.push(stream);
        }
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            let ended = connections.iter().filter(has_ended).count();
            if ended >= self.ended && has_at_least(&statuses(&connections), &self.answered) {
                let open = connections.len() - ended;
                ensure!(open >= self.open, "only {open} connections are open without an answer, and not {}", self.open);
                connections.into_iter().for_each(|connection| field.hold(connection));
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        let ended = connections.iter().filter(has_ended).count();
        let (expected, answers) = (&self.answered, statuses(&connections));
        bail!(
            "the host has answered or closed {ended} connections, and not {}; answers by status: {answers:?}, and not {expected:?}",
            self.ended
        )
    }

    /// The words of one request.
    fn words_of(&self, n: usize, field: &Field, words: &Words) -> Result<Words> {
        let mut words = words.clone();
        words.insert("n".into(), n.to_string());
        words.insert("by".into(), self.name(n).to_owned());
        if self.hold.is_some() || self.raw.is_some() {
            words.insert("token".into(), self.principal(n, field)?.token().to_owned());
        }
        Ok(words)
    }

    /// Runs the step with its number of repetitions and its concurrency.
    fn all(&self, field: &Field, words: &Words) -> Result<Vec<(i32, String)>> {
        let (times, next) = (self.times.unwrap_or(1), AtomicUsize::new(0));
        let answers = Mutex::new(Vec::new());
        let work = || -> Result<()> {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= times {
                    return Ok(());
                }
                let answer = self.once(field, words, n)?;
                answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.at_once.unwrap_or(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| match worker.join() {
                Ok(done) => done,
                Err(_) => bail!("a request got no response"),
            })
        })?;
        Ok(answers.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn once(&self, field: &Field, words: &Words, n: usize) -> Result<(i32, String)> {
        let words = self.words_of(n, field, words)?;
        let fill = |text: &str| filled(text, &words);
        match self.verb()? {
            Verb::Ask(method, path) => {
                let by = self.principal(n, field)?;
                let by = match self.leaves_ms {
                    Some(ms) => by.leaving_after(Duration::from_millis(ms)),
                    None => by,
                };
                self.ask(&by, method, &fill(path), &words)
            }
            Verb::Hold(_) => bail!("nothing reads these connections"),
            Verb::Raw(bytes) => raw(&field.host().admin.url(), fill(bytes).as_bytes()),
            Verb::Cli(line) => {
                let line: Vec<String> = line.iter().map(|word| fill(word)).collect();
                let line: Vec<&str> = line.iter().map(String::as_str).collect();
                let said = field.host().cli(Some(&self.principal(n, field)?), &line);
                Ok((said.code, said.out + &said.err))
            }
            Verb::Read(path) => Ok((0, fs::read_to_string(field.host().folder().join(path))?)),
            Verb::Damage(folder) => {
                files::damage(&field.host().folder().join(folder))?;
                Ok((0, String::new()))
            }
            Verb::Kill => field.restart("").map(|()| (0, String::new())),
            Verb::Configure(settings) => field.restart(settings).map(|()| (0, String::new())),
        }
    }

    fn ask(&self, by: &Client, method: &str, path: &str, words: &Words) -> Result<(i32, String)> {
        let body = match (&self.body, &self.catalog) {
            (Some(text), None) => filled(text, words).into_bytes(),
            (None, Some(tools)) => fixture(&serde_json::from_str(&filled(tools, words))?),
            (None, None) => Vec::new(),
            (Some(_), Some(_)) => bail!("a request has one body"),
        };
        let kind = if self.catalog.is_some() { "application/wasm" } else { "application/json" };
        let mut headers: Vec<(&str, &str)> = if body.is_empty() { vec![] } else { vec![("content-type", kind)] };
        headers.extend(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let answer = if body.len() < KEPT {
            by.send_again(method, path, &headers, &body)
        } else {
            by.send(method, path, &headers, &body)
        };
        match answer {
            Ok(answer) => Ok((i32::from(answer.status), answer.text)),
            // A host that refuses a body does not have to read it.
            Err(ureq::Error::Io(_)) => Ok((0, String::new())),
            Err(ureq::Error::Timeout(_)) if self.leaves_ms.is_some() => Ok((0, String::new())),
            Err(error) => Err(error.into()),
        }
    }

    /// The name of the principal of one request.
    fn name(&self, n: usize) -> &str {
        let callers = self.callers.unwrap_or(1).clamp(1, CALLERS.len());
        self.by.as_deref().unwrap_or(CALLERS[n % callers])
    }

    fn principal(&self, n: usize, field: &Field) -> Result<Client> {
        let host = field.host();
        let name = self.name(n);
        if let Some(at) = CALLERS.iter().position(|caller| *caller == name) {
            return Ok(field.attackers[at].clone());
        }
        Ok(match name {
            "alice" => host.approver.clone(),
            "page" => host.page.clone(),
            "root" => host.admin.clone(),
            "agent" => host.agent.clone(),
            "stranger" => host.stranger(),
            other => bail!("there is no principal {other}"),
        })
    }
}

/// Whether the host has answered or closed a connection that does not block.
fn has_ended(connection: &&TcpStream) -> bool {
    connection.peek(&mut [0]).err().is_none_or(|error| error.kind() != ErrorKind::WouldBlock)
}

/// Whether there are enough answers of each status.
fn has_at_least(found: &BTreeMap<String, usize>, least: &BTreeMap<String, usize>) -> bool {
    least.iter().all(|(status, least)| found.get(status).is_some_and(|found| found >= least))
}

/// The statuses of the answers whose beginning has arrived.
fn statuses(connections: &[TcpStream]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for connection in connections {
        let mut line = [0; b"HTTP/1.1 200".len()];
        let length = connection.peek(&mut line).unwrap_or_default();
        if let Some(status) = line[..length].strip_prefix(b"HTTP/1.1 ") {
            *found.entry(String::from_utf8_lossy(status).into_owned()).or_default() += 1;
        }
    }
    found
}

/// Sends raw bytes, and returns the status and the text of the response. The status is `0` if the host closed the
/// connection without a response. If the host does neither in time, this is an error.
fn raw(url: &str, bytes: &[u8]) -> Result<(i32, String)> {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // The host may respond and close before it has read everything, so a failed write is allowed.
    let _ = stream.write_all(bytes);
    let (mut answer, mut block) = (Vec::new(), [0; 4096]);
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&block[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => return Err(error).context("the host neither answers nor closes"),
        }
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).map_or(Ok(0), str::parse)?;
    Ok((status, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_word_is_filled_in_first() {
        let words = Words::from([("a".into(), "1".into()), ("ab".into(), "2".into())]);
        assert_eq!(filled("$ab $a $c", &words), "2 1 $c");
    }
}
