//! TLS: the operator's certificate, and its replacement while the server runs.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::net::TcpListener;
use toolgate_server::{Connections, Tls, TlsError, TlsFiles};

use crate::connections::{blocking, patient, until_closed};
use crate::world::TestServer;

macro_rules! file {
    ($name:literal) => {
        include_bytes!(concat!("../../../capabilities/src/http/tests/tls/", $name))
    };
}

const AUTHORITY: &[u8] = file!("ca.der");
const VALID: &[u8] = file!("server.der");
const EXPIRED: &[u8] = file!("expired.der");
const KEY: &[u8] = file!("key.der");

fn pem(what: &str, der: &[u8]) -> String {
    format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", STANDARD.encode(der))
}

/// Replaces a file in one step.
fn put(folder: &Path, name: &str, text: &str) {
    let beside = folder.join("new");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, folder.join(name)).unwrap();
}

/// Asks for the health of the host, and checks its certificate.
fn ask(address: SocketAddr) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(AUTHORITY)).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config =
        config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), "api.example.com".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(address)?);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// The bytes that a client without TLS gets.
fn ask_plainly(address: SocketAddr) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// Serves the world over TLS with the files of this folder, until the test ends.
async fn serve(world: &TestServer, folder: &Path, bounds: Connections) -> SocketAddr {
    put(folder, "cert.pem", &pem("CERTIFICATE", VALID));
    put(folder, "key.pem", &pem("PRIVATE KEY", KEY));
    let tls = Tls::open(TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") }).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = world.router.clone();
    tokio::spawn(toolgate_server::serve(listener, router, bounds, Some(tls), std::future::pending()));
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_certificate_is_used_for_new_connections() {
    let folder = tempfile::tempdir().unwrap();
    let world = TestServer::new();
    let address = serve(&world, folder.path(), Connections::default()).await;
    blocking(move || {
        assert!(ask(address).unwrap().starts_with("HTTP/1.1 200"));
        assert!(!ask_plainly(address).starts_with(b"HTTP/1.1 200"));
        put(folder.path(), "cert.pem", &pem("CERTIFICATE", EXPIRED));
        let refused = ask(address).expect_err("it has expired").to_string();
        assert!(refused.contains("xpired"), "{refused}");
        put(folder.path(), "cert.pem", "half a certific");
        let refused = ask(address).expect_err("the one from before is used").to_string();
        assert!(refused.contains("xpired"), "{refused}");
        std::fs::remove_file(folder.path().join("cert.pem")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("cert.pem"), rustix::fs::Mode::RWXU).unwrap();
        ask(address).expect_err("a pipe is not read, and the one from before is used");
        put(folder.path(), "cert.pem", &pem("CERTIFICATE", VALID));
        assert!(ask(address).unwrap().starts_with("HTTP/1.1 200"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_handshakes_do_not_block_the_next_client() {
    // The beginning of a record with a ClientHello of 512 bytes.
    const BEGUN: &[u8] = b"\x16\x03\x01\x02\x00\x01";
    let folder = tempfile::tempdir().unwrap();
    let world = TestServer::new();
    let address = serve(&world, folder.path(), Connections { max: 3, ..patient() }).await;
    blocking(move || {
        let mut begun: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
        begun.iter_mut().for_each(|connection| connection.write_all(BEGUN).unwrap());
        assert!(ask(address).unwrap().starts_with("HTTP/1.1 200"));
        // The handshakes that had waited longest were ended. The others fit beside the neighbour.
        begun.drain(..18).for_each(|mut connection| assert_eq!(until_closed(&mut connection), ""));
    })
    .await;
}

#[test]
fn unusable_certificate_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = TlsFiles { certificate: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    let refused = |certificate: &str, key: &str, expected: &str| {
        put(folder.path(), "cert.pem", certificate);
        put(folder.path(), "key.pem", key);
        let Err(error) = Tls::open(files.clone()) else { panic!("{expected}") };
        assert!(error.to_string().contains(expected), "{error}");
    };
    let (valid, key) = (pem("CERTIFICATE", VALID), pem("PRIVATE KEY", KEY));
    assert!(Tls::open(files.clone()).is_err_and(|error| error.to_string().contains("cannot read")));
    refused("", &key, "cert.pem has no certificate in PEM");
    refused(&valid, &valid, "key.pem has no private key in PEM");
    refused(&pem("CERTIFICATE", b"nonsense"), &key, "cannot be used with the key in");
    let large = "x".repeat((1 << 20) + 1);
    put(folder.path(), "cert.pem", &large);
    let read = |files: &TlsFiles| Tls::open(files.clone()).err().unwrap();
    let because = |error: &TlsError| std::error::Error::source(error).unwrap().to_string();
    assert_eq!(because(&read(&files)), "it has more than 1048576 bytes");
    // Nobody writes to the pipe, so a read of it would not end.
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(because(&read(&TlsFiles { certificate: pipe, ..files })), "it is not a regular file");
}
