//! The HTTP client for a host. It turns problem details (RFC 9457) into reports.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use api::{Problem, ProblemCode, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use toolgate::tokens::Tokens;
use ureq::http::{Response, StatusCode};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector as _, DefaultConnector};
use ureq::{Agent, Body};

use crate::address::Found;
use crate::args::{self, Connection};
use crate::own;
use crate::report::{Exit, Report, token_with};
use crate::terminal::Terminal;

/// The maximal size of a file with a token, in bytes.
const MAX_TOKEN: u64 = 4096;

/// The maximal size of an answer, in bytes.
const MAX_ANSWER: u64 = 256 << 20;

/// How long to wait between two requests to a host that still loads plugins, and how many times: two minutes in all.
const LOADING: (Duration, u32) = (Duration::from_millis(250), 480);

/// The size of a page of a list. Hosts send no larger ones.
pub(crate) const PAGE: &str = "500";

/// The parameters of a query. Parameters without a value are omitted.
pub(crate) type Query<'a> = &'a [(&'a str, Option<&'a str>)];

/// The address of a host, and the token to use.
pub(crate) struct Client {
    agent: Agent,
    url: String,
    token: Option<String>,
}

impl Client {
    /// Finds the host's address and the token: on the command line, or in the data folder.
    ///
    /// Anybody can write an address into a folder that is found by its name, or listen at the address of a host that has
    /// ended. So the address of a folder counts only if the folder is the user's own, while its host runs, and only on
    /// this machine.
    pub(crate) fn new(connection: &Connection) -> Result<Self, Report> {
        let folder = connection.data.folder()?;
        let found = || {
            let found = Found::of_running(&folder).map_err(|why| foreign(&folder, &why))?;
            found.ok_or_else(|| not_running(&folder))
        };
        let found = if connection.url.is_none() { Some(found()?) } else { None };
        let url = connection.url.as_ref().or(found.as_ref().map(|found| &found.url)).cloned().unwrap_or_default();
        let uri: ureq::http::Uri = url.parse().map_err(|error| {
            Report::new(Exit::Usage, format!("{url:?} is not the address of a host")).because(error)
        })?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            let report = Report::new(Exit::Usage, format!("{url:?} is not the address of a host"));
            let report = report.because("it does not begin with http:// or https://");
            return Err(if url.contains("://") { report } else { report.hint(format!("try http://{url}")) });
        }
        // The admin token of the data folder is never sent to another machine.
        let is_local = uri.host().is_some_and(|host| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost" || host.parse().is_ok_and(args::is_private)
        });
        if connection.url.is_none() && !is_local {
            let message =
                format!("the host of {} listens at {url}, which is not on this machine only", folder.display());
            return Err(Report::new(Exit::Usage, message).hint(EXPLICIT));
        }
        let admin = || own::read(&folder, Tokens::ADMIN_FILE).ok().flatten().filter(|_| is_local);
        let token = given_token(connection)?.or_else(admin).map(|token| token.trim().to_owned());
        Ok(Self { agent: agent(found, is_local), url: url.trim_end_matches('/').to_owned(), token })
    }

    /// Reads a resource as text.
    pub(crate) fn get(&self, path: &str, query: Query<'_>) -> Result<String, Report> {
        self.once_loaded(|| {
            let request = self.agent.get(format!("{}{path}", self.url)).query_pairs(pairs(query));
            let request = request.config().timeout_global(Some(Duration::from_secs(120))).build();
            text(self.answer(self.signed(request).call())?)
        })
    }

    /// Reads and parses a resource.
    pub(crate) fn read<T: DeserializeOwned>(&self, path: &str, query: Query<'_>) -> Result<T, Report> {
        parse(&self.get(path, query)?)
    }

    /// Posts JSON.
    pub(crate) fn post(&self, path: &str, query: Query<'_>, body: &[u8]) -> Result<String, Report> {
        self.once_loaded(|| {
            let request = self.agent.post(format!("{}{path}", self.url)).query_pairs(pairs(query));
            let request = request.config().timeout_global(Some(Duration::from_secs(120))).build();
            text(self.answer(self.signed(request).content_type("application/json").send(body))?)
        })
    }

    /// Makes a request again while the host refuses it because it still loads plugins. Such a request had no effect.
    fn once_loaded(&self, request: impl Fn() -> Result<String, Report>) -> Result<String, Report> {
        let mut answer = request();
        for attempt in 0..LOADING.1 {
            match &answer {
                Err(report) if report.is_loading() => {}
                _ => break,
            }
            if attempt == 0 {
                Terminal::new().note(&format!("waiting: the host at {} still loads plugins\n", self.url));
            }
            std::thread::sleep(LOADING.0);
            answer = request();
        }
        answer
    }

    /// Reads a resource of any size.
    pub(crate) fn download(&self, path: &str) -> Result<impl std::io::Read + use<>, Report> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let answer = self.answer(self.signed(request).call())?;
        Ok(answer.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// Posts a value as JSON, and parses the answer.
    pub(crate) fn exchange<T: DeserializeOwned>(&self, path: &str, value: &impl Serialize) -> Result<T, Report> {
        parse(&self.post(path, &[], &serde_json::to_vec(value)?)?)
    }

    /// Posts a message of another protocol. The answer may have any status, and must be complete within the time.
    #[cfg(feature = "mcp")]
    pub(crate) fn send(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        time: Option<Duration>,
    ) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.post(format!("{}{path}", self.url));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.config().timeout_global(time).build();
        self.signed(request).content_type("application/json").send(body)
    }

    /// Deletes a resource.
    pub(crate) fn delete(&self, path: &str) -> Result<String, Report> {
        let request = self.agent.delete(format!("{}{path}", self.url));
        let request = request.config().timeout_global(Some(Duration::from_secs(120))).build();
        text(self.answer(self.signed(request).call())?)
    }

    /// Reads a list page by page, and passes each item to the function as the host wrote it: all of them, or at most `max`.
    pub(crate) fn pages(
        &self,
        path: &str,
        (query, list): (Query<'_>, &str),
        limit: Option<usize>,
        mut item: impl FnMut(&str) -> Result<(), Report>,
    ) -> Result<usize, Report> {
        let (mut after, mut seen): (Option<String>, usize) = (None, 0);
        loop {
            let mut parameters = query.to_vec();
            if after.is_some() {
                parameters.retain(|(name, _)| *name != "after");
                parameters.push(("after", after.as_deref()));
            }
            let page: BTreeMap<String, Box<RawValue>> = self.read(path, &parameters)?;
            let items: Vec<Box<RawValue>> = parse(page.get(list).map_or("[]", |items| items.get()))?;
            for each in items {
                if limit.is_some_and(|limit| seen >= limit) {
                    return Ok(seen);
                }
                item(each.get())?;
                seen += 1;
            }
            after = next(&page)?;
            if after.is_none() {
                return Ok(seen);
            }
        }
    }

    /// Opens a stream of events.
    pub(crate) fn stream(
        &self,
        path: &str,
        query: Query<'_>,
        headers: &[(&str, &str)],
    ) -> Result<impl BufRead + use<>, Report> {
        let request = self.agent.get(format!("{}{path}", self.url)).query_pairs(pairs(query));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = self.answer(self.signed(request).call())?;
        Ok(BufReader::new(answer.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    fn signed<T>(&self, request: ureq::RequestBuilder<T>) -> ureq::RequestBuilder<T> {
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn answer(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, Report> {
        let mut answer = answer.map_err(|error| {
            if is_closed(&error) {
                return Report::new(Exit::Refused, "the host closed the connection while the request was being sent")
                    .because(error)
                    .hint(
                        "the request may be too large, or the host was stopped; `toolgate tools` shows whether it runs",
                    );
            }
            Report::new(Exit::Unreachable, format!("cannot reach a host at {}", self.url))
                .because(error)
                .hint("start one with `toolgate serve`, or name its address with --url or TOOLGATE_URL")
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let problem = answer.body_mut().read_to_string().unwrap_or_default();
        Err(report(status, serde_json::from_str(&problem).unwrap_or_default(), self.token.is_some()))
    }

    /// The report for one refused part of a request that was accepted.
    pub(crate) fn refused(&self, status: u16, problem: Problem) -> Report {
        report(StatusCode::from_u16(status).unwrap_or_default(), problem, self.token.is_some())
    }
}

/// The agent for requests. A host on this machine is never reached through a proxy of the environment: it would read the
/// token. The address that was found in a folder counts only while its host runs.
pub(crate) fn agent(found: Option<Found>, is_local: bool) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_connect(Some(Duration::from_secs(5)));
    let config = if is_local { config.proxy(None) } else { config }.build();
    match found {
        None => config.new_agent(),
        Some(found) => Agent::with_parts(config, DefaultConnector::new().chain(found), DefaultResolver::default()),
    }
}

const EXPLICIT: &str = "if you trust the host at that address, name it with --url or TOOLGATE_URL";

/// The token that the user names.
pub(crate) fn given_token(connection: &Connection) -> Result<Option<String>, Report> {
    match &connection.token_file {
        Some(file) => token_in(file).map(Some),
        None => Ok(connection.token.clone()),
    }
}

/// The report for an address or token in a folder that others can change.
pub(crate) fn foreign(folder: &Path, why: &std::io::Error) -> Report {
    Report::new(Exit::Usage, format!("the token is not sent: another user could have changed {}", folder.display()))
        .because(why)
        .hint("name the host's address with --url or TOOLGATE_URL, or its data folder with --data")
}

fn not_running(folder: &Path) -> Report {
    Report::new(Exit::Unreachable, format!("no host runs on {}", folder.display()))
        .hint("start one with `toolgate serve`, or name its address with --url or TOOLGATE_URL")
}

/// The token in a file.
fn token_in(file: &Path) -> Result<String, Report> {
    if let Some(folder) = args::folder_instead(file, "a file") {
        return Err(folder.hint("name the file with the token"));
    }
    let text = std::fs::File::open(file).and_then(|file| std::io::read_to_string(std::io::Read::take(file, MAX_TOKEN)));
    let unread = |error| args::unread(format!("the token in {}", file.display()), error);
    let text = text.map_err(|error| unread(error).hint("correct the path, or make the file readable"))?;
    let token = text.trim();
    // The sentence must not show the content: it may be a secret.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Report::new(Exit::Usage, format!("{} must contain exactly one token", file.display()))
            .hint("`toolgate token create` prints a token: write its standard output into the file"));
    }
    Ok(token.to_owned())
}

/// Where the next page of a list begins. Lists say it with a word or with a number.
fn next(answer: &BTreeMap<String, Box<RawValue>>) -> Result<Option<String>, Report> {
    let Some(next) = answer.get("next") else { return Ok(None) };
    Ok(match parse(next.get())? {
        serde_json::Value::String(next) => Some(next),
        serde_json::Value::Number(next) => Some(next.to_string()),
        _ => None,
    })
}

/// Whether a host has accepted the connection and then closed it.
fn is_closed(error: &ureq::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error, ureq::Error::Io(error) if matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset))
}

fn pairs<'a>(query: Query<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    query.iter().filter_map(|(name, value)| value.map(|value| (*name, value)))
}

fn text(answer: Response<Body>) -> Result<String, Report> {
    answer
        .into_body()
        .into_with_config()
        .limit(MAX_ANSWER)
        .read_to_string()
        .map_err(|error| Report::new(Exit::Unreachable, "the host's answer is incomplete").because(error))
}

/// Parses an answer. The report names the member that a host of another version writes differently.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Report> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text)).map_err(|error| {
        Report::new(Exit::HostFault, "this version of toolgate cannot read the host's answer")
            .because(error)
            .hint("check that the host and this binary have the same version")
    })
}

/// The report for a refused request.
fn report(status: StatusCode, problem: Problem, signed: bool) -> Report {
    let exit = if status.is_server_error() { Exit::HostFault } else { Exit::Refused };
    let message = if problem.detail.is_empty() { problem.title } else { problem.detail };
    let mut report = match problem.errors.len() {
        // The detail of such a problem is the list of its errors.
        2.. => Report::new(exit, "the host does not accept the request").because_of(&problem.errors),
        _ if message.is_empty() => Report::new(exit, format!("the host answered {status}")),
        _ => Report::new(exit, message),
    }
    .coded(problem.code);
    if let Some(role) = problem.role {
        report = report.hint(format!("use {}", token_with(role)));
    }
    match (problem.code, status) {
        (Some(ProblemCode::Stale), _) => {
            let report = match (problem.by, problem.at) {
                (Some(by), Some(at)) => report.because(format!("{by} ended it at {at}")),
                _ => report,
            };
            report.hint("`toolgate pending` lists the pending suspensions")
        }
        (Some(ProblemCode::DigestMismatch), _) => {
            let digest = problem.digest.map_or_else(String::new, |digest| format!("; its digest is {digest}"));
            report.hint(format!("look at it again with `toolgate show`{digest}"))
        }
        (Some(ProblemCode::NotFound), _) if problem.resource == Some(Resource::Conversation) => {
            report.hint("`toolgate conversations` lists those that you may see")
        }
        (Some(ProblemCode::NotFound), _) if matches!(problem.resource, Some(Resource::Turn | Resource::Call)) => report
            .hint("pass its conversation with --conversation; `toolgate pending` and `toolgate conversations` show it"),
        (_, StatusCode::UNAUTHORIZED) if signed => {
            report.hint("`toolgate token list` shows the holders of tokens, and `toolgate token create` makes a token")
        }
        (_, StatusCode::UNAUTHORIZED) => report.hint(
            "give a token with --token or TOOLGATE_TOKEN, or the host's data folder with --data: it has the admin's token",
        ),
        _ => report,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_word_names_its_member() {
        let tool = r#"{"tools": [{"name": "pay", "description": "", "parameters": {}, "executor": "robot"}]}"#;
        let report = parse::<api::ToolList>(tool).expect_err("no such executor");
        let shown = format!("{report:?}");
        assert!(shown.contains("tools[0].executor: unknown variant `robot`"), "{shown}");
        assert!(shown.contains("the host and this binary have the same version"), "{shown}");
        let entry = r#"{"position": 1, "hash": "", "at": "", "by": "ann", "action": "sneeze"}"#;
        let report = parse::<api::AuditEntry>(entry).expect_err("no such action");
        assert!(format!("{report:?}").contains("action: unknown variant `sneeze`"), "{report:?}");
        let content = r#"{"ok": false, "error": {"code": "sneezed", "message": ""}}"#;
        let report = parse::<api::Content>(content).expect_err("no such code");
        assert!(format!("{report:?}").contains("error.code: expected an outcome"), "{report:?}");
    }
}
