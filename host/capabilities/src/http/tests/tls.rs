//! Certificates are checked against the name in the URL, and secrets are sent to no other host.

use std::io::Write as _;
use std::net::TcpStream;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::server::{Script, Server, head, says};
use super::*;
use crate::http::settle::shown;
use crate::secrets::{SecretPlace, SecretValue};

const AUTHORITY: &[u8] = include_bytes!("tls/ca.der");
const VALID: &[u8] = include_bytes!("tls/server.der");
const EXPIRED: &[u8] = include_bytes!("tls/expired.der");
const KEY: &[u8] = include_bytes!("tls/key.der");

/// A server with this certificate, on a connection where the client speaks first: `Server` must not read its head.
fn secured(certificate: &'static [u8], answer: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(certificate)], key)
        .expect("a certificate");
    let config = Arc::new(config);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let mut stream: StreamOwned<ServerConnection, TcpStream> = StreamOwned::new(connection, stream);
            let heard = head(&mut stream);
            if !heard.is_empty() {
                let _ = stream.write_all(answer(&heard).as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    address
}

fn fixed(_heard: &str) -> String {
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_owned()
}

/// A call that also trusts the authority of these tests.
fn trusting(host: &str, server: SocketAddr) -> Setup {
    let rules = vec![rule(&format!("https://{host}:{}", server.port()), Reach::Private)];
    Setup { authorities: vec![AUTHORITY.to_vec()], ..Setup::with(rules) }
}

#[test]
fn certificate_must_match_the_host() {
    let server = secured(VALID, fixed);
    let url = |host: &str| format!("https://{host}:{}/", server.port());
    assert_eq!(trusting("api.example.com", server).world().get(&url("api.example.com")).text(), "ok");
    assert_eq!(trusting("127.0.0.1", server).world().get(&url("127.0.0.1")).text(), "ok", "by its address");
    // The right authority, the wrong name.
    let error = trusting("other.example.com", server).world().fails(&url("other.example.com"));
    assert!(matches!(error, Error::TlsCertificateError), "{error:?}");
    // The right name with an unknown authority.
    let stranger = Setup { authorities: vec![], ..trusting("api.example.com", server) };
    assert!(matches!(stranger.world().fails(&url("api.example.com")), Error::TlsCertificateError));
    let expired = secured(EXPIRED, fixed);
    let error =
        trusting("api.example.com", expired).world().fails(&format!("https://api.example.com:{}/", expired.port()));
    assert!(matches!(error, Error::TlsCertificateError), "{error:?}");
}

#[test]
fn server_without_tls_gets_nothing_over_https() {
    let server = Server::start(vec![says("HTTP/1.1 200 OK\r\n\r\n")]);
    let url = format!("https://api.example.com:{}/", server.address.port());
    // It waits for an empty line, which a TLS greeting does not contain, until the time limit.
    let brief = trusting("api.example.com", server.address).limits(|limits| limits.http_time = Span::from_millis(300));
    assert!(matches!(brief.world().fails(&url), Error::HttpResponseTimeout | Error::TlsProtocolError));
    let rude = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = rude.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = rude.accept() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let error =
        trusting("api.example.com", address).world().fails(&format!("https://api.example.com:{}/", address.port()));
    assert!(matches!(error, Error::TlsProtocolError), "{error:?}");
}

#[test]
fn invalid_certificate_authority_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let made = HttpClient::new(runtime.handle().clone(), Arc::new(Names::default()), &[b"no certificate".to_vec()]);
    assert!(made.is_err());
}

const VALUE: &str = "hunter2-hunter2-hunter2";

fn secret() -> Secret {
    Secret {
        name: "token".to_owned(),
        value: SecretValue::new(VALUE).expect("a value"),
        hosts: vec!["api.example.com".parse().expect("a host")],
        places: vec![SecretPlace::Header("authorization".to_owned()), SecretPlace::Body("/token".to_owned())],
    }
}

/// A world with the secret, and its placeholder.
fn entrusted(setup: Setup) -> (HttpCall, String) {
    let world = Setup { secrets: vec![secret()], ..setup }.world();
    let placeholder = world.placeholder.clone().expect("a placeholder");
    (world, placeholder)
}

#[test]
fn secret_is_sent_to_its_host_and_its_echo_is_redacted() {
    let server = secured(VALID, |heard| {
        let sent = heard.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default();
        assert_eq!(sent, format!("Bearer {VALUE}"));
        let (length, split) = (sent.len(), sent.split_at(12));
        // In a field, and in a body whose two pieces split the value.
        format!(
            "HTTP/1.1 200 OK\r\nx-echo: {sent}\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
            12,
            split.0,
            length - 12,
            split.1
        )
    });
    let (mut world, placeholder) = entrusted(trusting("api.example.com", server));
    let url = format!("https://api.example.com:{}/", server.port());
    let bearer = format!("Bearer {placeholder}");
    let reply = world
        .send(request("GET", &url, &[("authorization", &bearer), ("accept-encoding", "br")], ""))
        .expect("an answer");
    assert_eq!(reply.headers["x-echo"], "Bearer [secret token]");
    assert_eq!(reply.text(), "Bearer [secret token]");
}

#[test]
fn secret_in_a_body_changes_the_content_length() {
    let (tell, heard) = std::sync::mpsc::channel();
    let script: Script = Box::new(move |stream| {
        use std::io::Read as _;
        let mut body = vec![0; format!("{{\"token\":\"{VALUE}\"}}").len()];
        stream.read_exact(&mut body).expect("a body");
        tell.send(String::from_utf8(body).expect("text")).expect("the test waits");
        says("HTTP/1.1 204 No Content\r\n\r\n")(stream);
    });
    let server = Server::start(vec![script]);
    let (mut world, placeholder) = entrusted(Setup::at(server.address));
    let url = format!("http://api.example.com:{}/", server.address.port());
    let body = format!("{{\"token\":\"{placeholder}\"}}");
    let length = body.len().to_string();
    let headers = [("content-type", "application/json"), ("content-length", length.as_str())];
    assert_eq!(world.send(request("POST", &url, &headers, &body)).expect("an answer").status, 204);
    assert_eq!(heard.recv().expect("the server tells"), format!("{{\"token\":\"{VALUE}\"}}"));
}

#[test]
fn secret_is_sent_to_no_other_host() {
    let server = Server::start(vec![says("HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\nok")]);
    let port = server.address.port();
    let rules = vec![
        rule(&format!("http://api.example.com:{port}"), Reach::Private),
        rule(&format!("http://other.example.com:{port}"), Reach::Private),
    ];
    let (mut world, placeholder) = entrusted(Setup::with(rules));
    let url = |host: &str, query: &str| format!("http://{host}.example.com:{port}/{query}");
    let query = format!("?key={placeholder}");
    for refused in [
        request("GET", &url("other", ""), &[("authorization", &placeholder)], ""),
        request("GET", &url("api", ""), &[("x-other", &placeholder)], ""),
        request("GET", &url("api", &query), &[], ""),
    ] {
        assert!(matches!(world.send(refused), Err(Error::HttpRequestDenied)));
        assert!(world.log().pop().expect("a line").contains("the secret token is not granted for"));
    }
    assert_eq!(server.unheard(), 0, "the client sent nothing");
    // Content that cannot be searched for the secret is not returned.
    assert!(matches!(world.fails(&url("api", "")), Error::HttpResponseContentCoding(_)));
}

#[test]
fn plugin_with_secrets_cannot_choose_the_encoding() {
    let answers = [
        "HTTP/1.1 206 Partial Content\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-type: multipart/byteranges; boundary=x\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain; Charset=\"UTF-16\"\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\netag: \"1\"\r\ncontent-length: 2\r\n\r\nok",
    ];
    let server = Server::start(answers.into_iter().map(says).collect());
    let url = format!("http://api.example.com:{}/", server.address.port());
    let (mut world, _) = entrusted(Setup::at(server.address));
    let chosen =
        [("range", "bytes=0-1"), ("if-range", "x"), ("accept-charset", "utf-16"), ("accept", "*/*; Charset=utf-16")];
    for _ in 1..answers.len() {
        let sent = world.send(request("GET", &url, &chosen, ""));
        assert!(matches!(sent, Err(Error::HttpResponseContentCoding(_))), "{sent:?}");
        let heard = server.heard();
        assert!(!heard.contains("range") && !heard.contains("charset"), "{heard}");
    }
    let reply = world.send(request("GET", &url, &[("accept", "text/html")], "")).expect("an answer");
    assert_eq!((reply.text(), reply.headers.len()), ("ok", 1), "length and tag belong to the original body");
    assert!(server.heard().contains("accept: text/html"));
}

#[test]
fn with_secrets_plain_http_reaches_only_the_own_network() {
    let server = Server::start(vec![]);
    let (mut world, _) = entrusted(Setup::at(server.address).found(vec![vec!["93.184.216.34"]]));
    let url = format!("http://api.example.com:{}/", server.address.port());
    assert!(matches!(world.fails(&url), Error::DestinationIpProhibited));
}

#[test]
fn name_in_the_journal_holds_no_secret() {
    let plugin = PluginName::new("web").expect("a name");
    let vault = Vault::new(&plugin, "turn_1.call_1", &[secret()]);
    let named = |url: &str| shown(&get(url).into_parts().0, Some(&vault));
    assert_eq!(named("https://ann:word@example.com:8443/a/b?token=1"), "http GET https://example.com:8443/a/b");
    assert_eq!(named(&format!("http://example.com/{VALUE}/b")), "http GET http://example.com/[secret token]/b");
    // Cut only after the redaction: no part of the value stays at the end.
    let url = format!("http://example.com/{}/{VALUE}", "x".repeat(375));
    assert!(!named(&url).contains(&VALUE[..4]), "{}", named(&url));
}
