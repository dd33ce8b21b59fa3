//! JSON-RPC messages of a server. The host's own parser checks each text first: one value, no duplicate keys, bounded depth.

use domain::json::check_body;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The maximum length of the id of a request of the server, in bytes. Its answer repeats the id.
const MAX_ID: usize = 256;

/// A message that the server sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// The answer to a request of this host.
    Answer {
        id: u64,
        answer: Answer,
    },
    /// A request to this host, with the text of its id.
    Request {
        id: String,
        method: String,
    },
    Notification(String),
}

/// The answer to a request. The text of a result is verbatim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Result(String),
    Error { code: i64, message: String },
}

/// Why a request has no answer. The text continues a sentence about the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The server has not carried it out.
    NotSent(String),
    /// The server may have carried it out.
    Unknown(String),
    /// The server has forgotten the session, and has not carried it out. A new connection can send it again.
    SessionEnded,
    OutOfTime,
}

#[derive(Deserialize)]
struct Message<'a> {
    jsonrpc: String,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorText>,
}

#[derive(Deserialize)]
struct ErrorText {
    code: i64,
    message: String,
}

/// Reads one message.
///
/// # Errors
/// Why it is not one.
pub(crate) fn read(bytes: &[u8]) -> Result<Incoming, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    match check_body(text, &[]) {
        Ok(Some(_)) => {}
        Ok(None) => return Err("it is not an object".to_owned()),
        Err(malformed) => return Err(malformed.to_string()),
    }
    let message: Message<'_> = serde_json::from_str(text).map_err(|error| {
        // The text of the error would quote the server, and with it maybe a secret.
        format!("it does not have the form of JSON-RPC at column {}", error.column())
    })?;
    if message.jsonrpc != "2.0" {
        return Err("it is not JSON-RPC 2.0".to_owned());
    }
    let answer = match (message.result, message.error) {
        (Some(result), None) => Some(Answer::Result(result.get().to_owned())),
        (None, Some(ErrorText { code, message })) => Some(Answer::Error { code, message }),
        (None, None) => None,
        (Some(_), Some(_)) => return Err("it has both a result and an error".to_owned()),
    };
    match (message.method, message.id, answer) {
        (Some(_), Some(id), None) if id.get().len() > MAX_ID => Err(format!("its id has more than {MAX_ID} bytes")),
        (Some(method), Some(id), None) => Ok(Incoming::Request { id: id.get().to_owned(), method }),
        (Some(method), None, None) => Ok(Incoming::Notification(method)),
        (None, Some(id), Some(answer)) => {
            let id = id.get().parse().map_err(|_| "it answers a request that this host never sent".to_owned())?;
            Ok(Incoming::Answer { id, answer })
        }
        // The server could not read the id of a request.
        (None, None, Some(Answer::Error { code, .. })) => Err(format!("it reports the error {code}")),
        _ => Err("it is neither a request nor an answer".to_owned()),
    }
}

/// The text of a request, on one line. `params` is a JSON object.
pub(crate) fn request(id: u64, method: &str, params: &str) -> String {
    // In JSON, a line break is white space: strings contain only escaped ones.
    let params = params.replace(['\n', '\r'], " ");
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// The answer to a request of the server.
pub(crate) fn reply(id: &str, method: &str) -> String {
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    let error = r#"{"code":-32601,"message":"this host offers no sampling, no elicitation and no roots"}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_verbatim() {
        let read = read(br#"{"jsonrpc":"2.0","id":7,"result":{"a": 1.000000000000000000001}}"#).unwrap();
        let answer = Answer::Result(r#"{"a": 1.000000000000000000001}"#.to_owned());
        assert_eq!(read, Incoming::Answer { id: 7, answer });
    }

    #[test]
    fn message_that_is_not_json_rpc_is_refused() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for wrong in [
            "",
            "listening on stdio",
            "[]",
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            &format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(MAX_ID)),
            &deep,
        ] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(read(&[0xff]).is_err());
    }

    #[test]
    fn reason_quotes_nothing_of_the_server() {
        for text in [
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"bad token sk-1"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"sk-1","message":""}}"#,
        ] {
            let why = read(text.as_bytes()).unwrap_err();
            assert!(!why.contains("sk-1"), "{why}");
        }
    }

    #[test]
    fn request_is_one_line() {
        let text = request(1, "m", "{\n\"a\":\r\n\"\\n\"}");
        assert_eq!(text, r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{ "a":  "\n"}}"#);
    }

    #[test]
    fn requests_of_a_server_are_refused_except_ping() {
        let asked = read(br#"{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{}}"#).unwrap();
        let Incoming::Request { id, method } = asked else { panic!("{asked:?}") };
        assert!(reply(&id, &method).contains(r#""id":"x","error":{"code":-32601"#));
        assert_eq!(reply("1", "ping"), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    }
}
