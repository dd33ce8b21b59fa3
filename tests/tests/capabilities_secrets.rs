//! A secret on the real host: it goes from the operator's file to a server, and the plugin never sees it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::channel;

use serde_json::json;
use toolgate_tests::guests::plugin;
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, suspension_of};

const TOKEN: &str = "forge-token-0123456789";

#[test]
fn a_plugin_uses_a_token_that_it_cannot_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            // A server that echoes the request, as a debugging proxy would.
            let sent = head.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default();
            let issue = json!({"number": 7, "title": format!("sent {sent}"), "state": "open", "html_url": "u"});
            let body = if head.starts_with("POST") { issue.to_string() } else { json!([issue]).to_string() };
            tell.send(head.clone()).unwrap();
            let length = body.len();
            stream
                .write_all(
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
                        .as_bytes(),
                )
                .unwrap();
        }
    });
    let grants = format!(
        "[plugin.forge]\ncomponent = \"any\"\n\
         [plugin.forge.grants]\nconfig.api = \"http://{address}/api/v1\"\n\
         [[plugin.forge.grants.http]]\nurl = \"http://{address}/api/v1/\"\nmethods = [\"GET\", \"POST\"]\nprivate = true\n\
         [plugin.forge.grants.secrets.token]\nfile = \"token.txt\"\nhosts = [\"127.0.0.1\"]\nplaces = [\"header:authorization\"]\n"
    );
    let mut host = Setup::default().component("forge", plugin("forge")).tables(&grants).prepare();
    fs::write(host.folder().join("token.txt"), format!("{TOKEN}\n")).unwrap();
    host.start();

    let arguments = json!({"repository": {"owner": "acme", "name": "rockets"}});
    let turn = host.agent.call("c", "issue_list", arguments);
    assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
    assert!(
        heard.recv().unwrap().contains(&format!("\nauthorization: Bearer {TOKEN}\r")),
        "the server gets the secret"
    );
    assert_eq!(turn["calls"][0]["content"]["result"][0]["title"], "sent Bearer [secret token]", "the plugin does not");
    // A body has a length, because not every server accepts chunks.
    let arguments = json!({"repository": {"owner": "acme", "name": "rockets"}, "title": "t", "body": "b"});
    let turn = host.agent.call("c", "issue_create", arguments);
    let answered = host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve"})).ok(200);
    assert_eq!(answered["state"], "approve");
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
    let head = heard.recv().unwrap();
    assert!(head.contains("\ncontent-length: ") && !head.contains("chunked"), "{head}");
    // Neither the data of the host nor its log contains the token.
    host.kill();
    let mut folders = vec![host.data()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let bytes = fs::read(entry.path()).unwrap();
                let found = bytes.windows(TOKEN.len()).any(|at| at == TOKEN.as_bytes());
                assert!(!found, "{}", entry.path().display());
            }
        }
    }
    let log = fs::read_to_string(host.folder().join("host.log")).unwrap();
    assert!(!log.contains(TOKEN), "{log}");
}
