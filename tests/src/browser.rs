//! A browser that is logged in to a host, or that a one-time link let in.

use serde_json::{Value, json};

use crate::http::{Answer, Client};

/// A browser with its cookie and CSRF token.
pub struct Browser {
    client: Client,
    cookie: String,
    csrf: String,
}

impl Browser {
    /// The session from this response.
    #[must_use]
    pub fn of(client: Client, answer: &Answer) -> Self {
        let session = answer.ok(200);
        let set = answer.headers["set-cookie"].to_str().expect("a text");
        let cookie = set.split(';').next().expect("a cookie").to_owned();
        Self { client, cookie, csrf: session["csrf"].as_str().expect("a text").to_owned() }
    }

    /// The session of a log-in with this token. `stranger` has none.
    #[must_use]
    pub fn log_in(stranger: &Client, token: &str) -> Self {
        Self::of(stranger.clone(), &stranger.post("/v1/session", &json!({"token": token})))
    }

    /// A request of a page of this host.
    #[must_use]
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [
            ("cookie", self.cookie.as_str()),
            ("x-toolgate-csrf", &self.csrf),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/json"),
        ];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.client.send(method, path, &headers, body.as_bytes()).expect("an answer")
    }

    /// The same browser at another host, whose client without a token this is.
    #[must_use]
    pub fn at(&self, stranger: Client) -> Self {
        Self { client: stranger, cookie: self.cookie.clone(), csrf: self.csrf.clone() }
    }

    /// The session, as the host describes it.
    #[must_use]
    pub fn whose(&self) -> Answer {
        self.send("GET", "/v1/session", &Value::Null)
    }

    /// Answers a suspension.
    #[must_use]
    pub fn resolve(&self, suspension: &str, answer: &Value) -> Answer {
        self.send("POST", &format!("/v1/suspensions/{suspension}/resolve"), answer)
    }
}
