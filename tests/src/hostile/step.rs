//! One step of an attack, as a case has it. `<<text*N>>` repeats a text N times and replaces each `#` by its number. A
//! repeated text can contain another.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::Deserialize;

/// One step. It has exactly one verb.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// The principal: `mallory` (the default, a caller), `alice` (an approver), `page` (a client), `root` (an admin),
    /// `stranger`.
    #[serde(rename = "as")]
    pub(super) by: Option<String>,
    /// The number of callers that send the requests in turn, the first one `mallory`. Their names are `$by`.
    pub(super) callers: Option<usize>,
    pub(super) get: Option<String>,
    pub(super) post: Option<String>,
    pub(super) put: Option<String>,
    pub(super) delete: Option<String>,
    /// Raw bytes on a connection of their own. The first line of the response is `HTTP/1.1 STATUS …`.
    pub(super) raw: Option<String>,
    /// Raw bytes on connections that stay open until the case ends. The attacker reads nothing. Only the first round opens them.
    pub(super) hold: Option<String>,
    /// The number of these connections that the host answers or closes before the next step.
    pub(super) ended: usize,
    /// The least number of these connections that are then open without an answer.
    pub(super) open: usize,
    /// The least number of answers with each status. Of connections that are held, the beginning of an answer counts.
    pub(super) answered: BTreeMap<String, usize>,
    /// Arguments of the command line. The status is its exit code.
    pub(super) cli: Vec<String>,
    /// A file in the host's folder, to read. The status is 0.
    pub(super) read: Option<String>,
    /// A folder in the host's folder, in which each file gets another byte. The status is 0.
    pub(super) damage: Option<String>,
    /// Kills the host and starts it again. The status is 0.
    pub(super) kill: bool,
    /// Keys that are added to the configuration, for which the host is killed and started again. The status is 0.
    pub(super) configure: Option<String>,
    pub(super) body: Option<String>,
    /// The body is a fixture with these declarations.
    pub(super) catalog: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
    /// The allowed statuses. `0` is a connection that the host closed without a response.
    pub(super) status: Vec<i32>,
    /// The exact number of each status, where it is known.
    pub(super) exactly: BTreeMap<String, usize>,
    pub(super) says: Option<String>,
    pub(super) never: Vec<String>,
    pub(super) keep: BTreeMap<String, String>,
    pub(super) times: Option<usize>,
    pub(super) at_once: Option<usize>,
    /// The caller closes the connection if there is no response after this time. The status is 0.
    pub(super) leaves_ms: Option<u64>,
    /// Runs only in the first round, as `hold` does.
    pub(super) once: bool,
}

/// The action of a step.
pub(super) enum Verb<'a> {
    Ask(&'static str, &'a str),
    Raw(&'a str),
    Hold(&'a str),
    Cli(&'a [String]),
    Read(&'a str),
    Damage(&'a str),
    Kill,
    Configure(&'a str),
}

impl Step {
    pub(super) fn verb(&self) -> Result<Verb<'_>> {
        let asks = [("GET", &self.get), ("POST", &self.post), ("PUT", &self.put), ("DELETE", &self.delete)];
        let asks = asks.into_iter().filter_map(|(method, path)| Some(Verb::Ask(method, path.as_deref()?)));
        let raw = self.raw.as_deref().map(Verb::Raw);
        let cli = (!self.cli.is_empty()).then_some(Verb::Cli(&self.cli));
        let hold = self.hold.as_deref().map(Verb::Hold);
        let read = self.read.as_deref().map(Verb::Read);
        let damage = self.damage.as_deref().map(Verb::Damage);
        let kill = self.kill.then_some(Verb::Kill);
        let configure = self.configure.as_deref().map(Verb::Configure);
        let files = read.into_iter().chain(damage);
        let mut verbs = asks.chain(raw).chain(hold).chain(cli).chain(files).chain(kill).chain(configure);
        match (verbs.next(), verbs.next()) {
            (Some(verb), None) => Ok(verb),
            _ => bail!(
                "a step has exactly one of get, post, put, delete, raw, hold, cli, read, damage, kill and configure"
            ),
        }
    }
}

/// Expands repeated texts, so that a file stays small. The inner ones come first.
pub(super) fn repeated(text: &str) -> String {
    let Some((before, rest)) = text.split_once("<<") else { return text.to_owned() };
    let Some((inside, after)) = rest.split_once(">>") else { return text.to_owned() };
    let (outer, inside) = inside.rsplit_once("<<").map_or((None, inside), |(outer, inside)| (Some(outer), inside));
    let (once, times) = inside.rsplit_once('*').unwrap_or((inside, "1"));
    let times: usize = times.parse().unwrap_or(1);
    let many = if once.contains('#') {
        (0..times).map(|n| once.replace('#', &n.to_string())).collect()
    } else {
        once.repeat(times)
    };
    match outer {
        Some(outer) => repeated(&format!("{before}<<{outer}{many}{after}")),
        None => before.to_owned() + &many + &repeated(after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_text_is_expanded() {
        assert_eq!(repeated("a<<b*3>>c<<d#,*2>>e"), "abbbcd0,d1,e");
        assert_eq!(repeated("no <b> and << nothing"), "no <b> and << nothing");
        assert_eq!(repeated("<<#<<ab*2>><<c*3>>,*2>>d<<e*2>>"), "0ababccc,1ababccc,dee");
    }
}
