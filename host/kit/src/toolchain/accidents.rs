//! Installations that are killed, that run at once, or whose packages do not match the list. Each is a process of its own, like a
//! `toolgate build`, and installs from a server of the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use super::*;
use crate::Cache;

/// Variables that tell a process of this test to install: the folder, and the address of the server.
const CACHE: &str = "TOOLGATE_TEST_CACHE";
const SERVER: &str = "TOOLGATE_TEST_SERVER";

/// A package in an archive, and its digest for the list.
struct Package {
    archive: Vec<u8>,
    integrity: String,
}

impl Package {
    /// Packs it with programs that npm needs too.
    fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("package");
        fs::create_dir(&package).unwrap();
        fs::write(package.join("package.json"), r#"{"name":"tiny","version":"1.0.0"}"#).unwrap();
        let made =
            Command::new("tar").args(["czf", "tiny.tgz", "package"]).current_dir(folder.path()).status().unwrap();
        assert!(made.success());
        let script = "const c = require('crypto'), f = require('fs'); \
                      console.log('sha512-' + c.createHash('sha512').update(f.readFileSync('tiny.tgz')).digest('base64'))";
        let said = node().in_folder(folder.path()).args(["-e", script]).run("making a digest").unwrap();
        Self { archive: fs::read(folder.path().join("tiny.tgz")).unwrap(), integrity: said.trim().to_owned() }
    }
}

/// A registry with one package. The test decides when it answers.
struct Server {
    address: String,
    asked: Receiver<TcpStream>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, asked) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // A client that was killed before its request does not end the server.
                if was_asked(&mut stream) && sender.send(stream).is_err() {
                    return;
                }
            }
        });
        Self { address, asked }
    }

    /// Waits for a request.
    fn next(&self) -> TcpStream {
        self.asked.recv_timeout(Duration::from_secs(120)).expect("npm asks for the package")
    }
}

/// Whether a complete request arrived.
fn was_asked(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).is_err() {
            return false;
        }
        head.push(byte[0]);
    }
    true
}

fn answer(mut stream: TcpStream, archive: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", archive.len());
    stream.write_all(&[head.as_bytes(), archive].concat()).unwrap();
}

/// The list of a toolchain with this package only.
fn list(server: &str, integrity: &str) -> [(&'static str, Vec<u8>); 2] {
    let package = r#"{"name":"trial","version":"0.0.0","dependencies":{"tiny":"1.0.0"}}"#;
    let lock = format!(
        r#"{{"name":"trial","version":"0.0.0","lockfileVersion":3,"requires":true,"packages":{{
        "":{{"name":"trial","version":"0.0.0","dependencies":{{"tiny":"1.0.0"}}}},
        "node_modules/tiny":{{"version":"1.0.0","resolved":"http://{server}/tiny.tgz","integrity":"{integrity}"}}}}}}"#
    );
    [
        ("sdk/js/toolchain/quickjs/package.json", package.as_bytes().to_vec()),
        ("sdk/js/toolchain/quickjs/package-lock.json", lock.into_bytes()),
    ]
}

/// In a process of this test, installs and prints what happens. Returns whether this is such a process.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a test and its processes communicate this way"
)]
fn installs() -> bool {
    let said = |name| std::env::var(name).ok();
    let (Some(folder), Some(server)) = (said(CACHE), said(SERVER)) else { return false };
    let (server, integrity) = server.split_once(' ').unwrap();
    let list: Vec<(&str, &[u8])> =
        list(server, integrity).into_iter().map(|(path, content)| (path, &*content.leak())).collect();
    let say = |line: &str| println!("{line}");
    let kit = Kit {
        carried: list.leak(),
        cache: Cache::at(Path::new(&folder)).unwrap(),
        offline: false,
        say: &say,
        printed: &|_| {},
    };
    match QUICKJS.installed(&kit) {
        Ok(installed) => println!("installed: {}", installed.path("").display()),
        Err(error) => println!("failed: {error}: {}", error.output().unwrap_or_default().replace('\n', " ")),
    }
    true
}

/// A process that installs. Dropping it kills it and the processes that it started.
struct Installer {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Installer {
    fn start(test: &str, cache: &Path, server: &Server, integrity: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("toolchain::accidents::{test}"), "--nocapture", "--test-threads=1"]);
        command.env(CACHE, cache).env(SERVER, format!("{} {integrity}", server.address)).env("NO_PROXY", "127.0.0.1");
        command.env("npm_config_fetch_retries", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Reads up to the next line that contains this.
    fn says(&mut self, part: &str) -> String {
        let mut said = String::new();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended without {part:?}: {said}");
            if line.contains(part) {
                return line.trim_end().to_owned();
            }
            said.push_str(&line);
        }
    }

    fn kill(&mut self) {
        let group = format!("-{}", self.child.id());
        // It may have ended already.
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

impl Drop for Installer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The entries of the toolchains' folder, without locks.
fn there(cache: &Path) -> Vec<String> {
    let entries = cache.join("toolchains").read_dir().unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| Path::new(name).extension().is_none_or(|end| end != "lock")).collect();
    names.sort();
    names
}

#[test]
fn next_installation_removes_a_killed_one() {
    if installs() || left_out() {
        return;
    }
    let (folder, server, package) = (tempfile::tempdir().unwrap(), Server::start(), Package::make());
    let start = || {
        let test = "next_installation_removes_a_killed_one";
        Installer::start(test, folder.path(), &server, &package.integrity)
    };
    let mut killed = start();
    let request = server.next();
    killed.kill();
    drop(request);
    let left = there(folder.path());
    assert!(left.len() == 1 && left[0].starts_with(".quickjs-"), "{left:?}");

    // The folder of a killed toolgate with another list, and one to which another toolgate writes.
    let all = folder.path().join("toolchains");
    for name in [".go-000000000000-AbCdEf", ".go-111111111111-AbCdEf"] {
        fs::create_dir_all(all.join(name).join("site")).unwrap();
    }
    let lock = File::create(all.join("go-111111111111.lock")).unwrap();
    lock.lock().unwrap();

    let mut next = start();
    answer(server.next(), &package.archive);
    let place = next.says("installed: ").split_once("installed: ").unwrap().1.to_owned();
    assert!(Path::new(&place).join("node_modules/tiny/package.json").is_file());
    let name = Path::new(&place).file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(there(folder.path()), [".go-111111111111-AbCdEf".to_owned(), name]);
}

#[test]
fn two_installations_at_once_have_one_result() {
    if installs() || left_out() {
        return;
    }
    let (folder, server, package) = (tempfile::tempdir().unwrap(), Server::start(), Package::make());
    let start =
        || Installer::start("two_installations_at_once_have_one_result", folder.path(), &server, &package.integrity);
    let mut first = start();
    let request = server.next();
    let mut second = start();
    second.says("waiting until another toolgate has installed quickjs-");
    answer(request, &package.archive);
    assert_eq!(first.says("installed: "), second.says("installed: "));
    assert!(server.asked.try_recv().is_err(), "it is fetched once");
    assert_eq!(there(folder.path()).len(), 1);
}

#[test]
fn package_with_another_hash_is_not_installed() {
    if installs() || left_out() {
        return;
    }
    let (folder, server, package) = (tempfile::tempdir().unwrap(), Server::start(), Package::make());
    let test = "package_with_another_hash_is_not_installed";
    let mut installer = Installer::start(test, folder.path(), &server, &package.integrity);
    // npm may ask more than once.
    std::thread::spawn(move || {
        let mut other = package.archive;
        *other.last_mut().unwrap() ^= 1;
        server.asked.iter().for_each(|request| answer(request, &other));
    });
    let said = installer.says("failed: ");
    assert!(said.contains("installing npm packages failed") && said.contains("EINTEGRITY"), "{said}");
    assert_eq!(there(folder.path()), Vec::<String>::new());
}
