//! Issues of a code forge with the API of GitHub or Gitea: lists them, and opens one after an approval.
//!
//! The operator configures the address of the forge (`api`) and grants the token as a secret (`token`). This plugin can
//! send the token to that forge, but cannot read it.

use toolgate_sdk::config;
use toolgate_sdk::http::{Request, Response};
use toolgate_sdk::prelude::*;

/// A repository.
#[derive(Deserialize, JsonSchema)]
struct Repository {
    /// Who owns it.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_.-]{1,100}$"))]
    owner: String,
    /// Its name.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_.-]{1,100}$"))]
    name: String,
}

/// Which issues.
#[derive(Deserialize, JsonSchema)]
struct Which {
    repository: Repository,
    /// Open ones unless something else is said.
    #[serde(default)]
    state: State,
}

/// The state of an issue.
#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Open,
    Closed,
    All,
}

/// A new issue.
#[derive(Deserialize, JsonSchema)]
struct New {
    repository: Repository,
    /// One line.
    #[schemars(length(min = 1, max = 256))]
    title: String,
    /// Markdown.
    #[schemars(length(max = 60_000))]
    #[serde(default)]
    body: String,
}

/// An issue.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Issue {
    number: u64,
    title: String,
    state: String,
    html_url: String,
}

fn list(args: Which, call: &Call) -> Result<Vec<Issue>, Failure> {
    let state = match args.state {
        State::Open => "open",
        State::Closed => "closed",
        State::All => "all",
    };
    let url = format!("{}?state={state}&per_page=50", issues(&args.repository)?);
    let response = authorized(Request::get(url))?;
    // The model gets the failure, and the operator sees what the server sent.
    response.json().inspect_err(|_| {
        let beginning: String = response.text().chars().take(500).collect();
        call.log(Level::Warn, &format!("the answer is no list of issues: {beginning}"));
    })
}

fn create(args: New, call: &Call) -> Result<Issue, Failure> {
    call.progress("Opening the issue", None);
    let request = Request::post(issues(&args.repository)?);
    authorized(request.json(&json!({"title": args.title, "body": args.body}))?)?.json()
}

fn issues(repository: &Repository) -> Result<String, Failure> {
    // The schema allows dots, but a name that consists of dots is not valid.
    if [&repository.owner, &repository.name].into_iter().any(|part| part.chars().all(|c| c == '.')) {
        return Err(Failure::InvalidArguments("the repository's owner or name is only dots".to_owned()));
    }
    let api = config::required("api")?;
    Ok(format!("{}/repos/{}/{}/issues", api.trim_end_matches('/'), repository.owner, repository.name))
}

fn authorized(request: Request) -> Result<Response, Failure> {
    let token = config::required("token")?;
    let request = request.header("authorization", format!("Bearer {token}")).header("user-agent", "toolgate-forge");
    request.header("accept", "application/json").send()?.successful()
}

toolgate_sdk::plugin! {
    Tool::server("issue_list", "Lists the issues of a repository on the team's code forge.", list)
        .title("List issues")
        .read_only()
        .open_world(true)
        .keep_latest(4),

    Tool::server("issue_create", "Opens an issue in a repository on the team's code forge.", create)
        .requires_approval()
        .streaming()
        .title("Open an issue")
        .prompt("Open the issue \"{title}\" in {/repository/owner}/{/repository/name}?")
        .editable(&["title", "body"])
        .open_world(true),
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "tests")]

    use toolgate_sdk::testing::{Attempt, check};

    use super::*;

    fn attempt(tool: &str, arguments: Value) -> Attempt {
        Attempt::at(tool, arguments).config("api", "https://forge.example/api/v1/").config("token", "placeholder")
    }

    fn answer(status: u16, body: &Value) -> Response {
        Response { status, headers: Vec::new(), body: body.to_string().into_bytes() }
    }

    fn repository() -> Value {
        json!({"owner": "acme", "name": "rockets"})
    }

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).expect("no findings");
    }

    #[test]
    fn issues_are_listed_with_the_token_in_its_header() {
        let found = json!([{"number": 7, "title": "t", "state": "open", "html_url": "u", "more": 1}]);
        let run = attempt("issue_list", json!({"repository": repository()})).answers(move |request| {
            assert_eq!(request.url, "https://forge.example/api/v1/repos/acme/rockets/issues?state=open&per_page=50");
            assert!(request.headers.contains(&("authorization".to_owned(), "Bearer placeholder".to_owned())));
            Ok(answer(200, &found))
        });
        let expected = json!([{"number": 7, "title": "t", "state": "open", "html_url": "u"}]);
        assert_eq!(run.run(&tools()).result, Ok(expected));
    }

    #[test]
    fn issue_is_opened_and_a_refusal_is_reported() {
        let arguments = json!({"repository": repository(), "title": "leak"});
        let run = attempt("issue_create", arguments.clone()).answers(|request| {
            assert_eq!(request.method, "POST");
            let body: Value = serde_json_of(request.body.as_deref());
            assert_eq!(body, json!({"title": "leak", "body": ""}));
            Ok(answer(201, &json!({"number": 8, "title": "leak", "state": "open", "html_url": "u"})))
        });
        assert_eq!(run.run(&tools()).result.expect("opened")["number"], 8);
        for (status, expected) in [
            (403, Failure::Failed("the server answered with status 403".into())),
            (502, Failure::Unavailable("the server answered with status 502".into())),
        ] {
            let run = attempt("issue_create", arguments.clone()).answers(move |_| Ok(answer(status, &json!({}))));
            assert_eq!(run.run(&tools()).result, Err(expected));
        }
    }

    #[test]
    fn answer_that_is_no_list_is_in_the_log() {
        let run = attempt("issue_list", json!({"repository": repository()}));
        let run = run.answers(|_| Ok(answer(200, &json!({"message": "moved"})))).run(&tools());
        assert!(matches!(run.result, Err(Failure::Failed(_))), "{:?}", run.result);
        let line = r#"the answer is no list of issues: {"message":"moved"}"#;
        assert_eq!(run.logs, [(Level::Warn, line.to_owned())]);
    }

    #[test]
    fn name_of_dots_does_not_change_the_path() {
        let run = attempt("issue_list", json!({"repository": {"owner": "..", "name": "x"}}));
        let result = run.answers(|_| panic!("nothing is sent")).run(&tools()).result;
        assert!(matches!(result, Err(Failure::InvalidArguments(_))), "{result:?}");
    }

    fn serde_json_of(body: Option<&[u8]>) -> Value {
        std::str::from_utf8(body.expect("a body")).expect("text").parse().expect("JSON")
    }
}
