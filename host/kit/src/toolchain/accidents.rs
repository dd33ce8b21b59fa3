//! Installations that are killed, that meet, and whose packages are not what the list says. Each is a process of its own, as a
//! `toolgate build` is, and what it installs comes from a server of the test's.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use super::*;
use crate::Cache;

/// Says to a process of this test that it is to install: where, and from which address.
const CACHE: &str = "TOOLGATE_TEST_CACHE";
const SERVER: &str = "TOOLGATE_TEST_SERVER";

/// The one package, in an archive, and the digest of that as a list has it.
struct Package {
    archive: Vec<u8>,
    integrity: String,
}

impl Package {
    /// Made by the programs that npm needs anyway.
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

/// A registry with one package, which waits with each answer until it is told to.
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
                // Who was killed before it had asked is no reason to answer nobody else.
                if was_asked(&mut stream) && sender.send(stream).is_err() {
                    return;
                }
            }
        });
        Self { address, asked }
    }

    /// Waits until it is asked. An installation that never asks is a failure and no wait.
    fn next(&self) -> TcpStream {
        self.asked.recv_timeout(Duration::from_secs(120)).expect("npm asks for the package")
    }
}

/// Whether a whole request came.
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

/// The list of a toolchain of this package alone.
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

/// What a process of this test does: it installs, says what it does, and ends.
#[expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a test speaks so with its own processes")]
fn installs() -> bool {
    let said = |name| std::env::var(name).ok();
    let (Some(folder), Some(server)) = (said(CACHE), said(SERVER)) else { return false };
    let (server, integrity) = server.split_once(' ').unwrap();
    let list: Vec<(&str, &[u8])> =
        list(server, integrity).into_iter().map(|(path, content)| (path, &*content.leak())).collect();
    let say = |line: &str| println!("{line}");
    let kit = Kit { carried: list.leak(), cache: Cache::at(Path::new(&folder)).unwrap(), offline: false, say: &say };
    match QUICKJS.installed(&kit) {
        Ok(installed) => println!("installed: {}", installed.path("").display()),
        Err(error) => println!("failed: {error}: {}", error.output().unwrap_or_default().replace('\n', " ")),
    }
    true
}

/// A process that installs, and those that it starts. They are killed when it is dropped.
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

    /// The next line with this in it.
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

    /// Kills it, and what it has started.
    fn kill(&mut self) {
        let group = format!("-{}", self.child.id());
        // If it has ended already there is nothing to end.
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

impl Drop for Installer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What is in the folder of toolchains, locks left out.
fn there(cache: &Path) -> Vec<String> {
    let entries = cache.join("toolchains").read_dir().unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| Path::new(name).extension().is_none_or(|end| end != "lock")).collect();
    names.sort();
    names
}

#[test]
fn an_installation_that_was_killed_is_not_taken_for_one_and_goes_with_the_next() {
    if installs() || left_out() {
        return;
    }
    let (folder, server, package) = (tempfile::tempdir().unwrap(), Server::start(), Package::make());
    let start = || {
        let test = "an_installation_that_was_killed_is_not_taken_for_one_and_goes_with_the_next";
        Installer::start(test, folder.path(), &server, &package.integrity)
    };
    let mut killed = start();
    let request = server.next();
    killed.kill();
    drop(request);
    let left = there(folder.path());
    assert!(left.len() == 1 && left[0].starts_with(".quickjs-"), "{left:?}");

    // What another toolgate is writing, and what is left of one that was killed and had another list.
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
fn a_package_that_is_not_the_one_of_the_list_is_not_installed() {
    if installs() || left_out() {
        return;
    }
    let (folder, server, package) = (tempfile::tempdir().unwrap(), Server::start(), Package::make());
    let test = "a_package_that_is_not_the_one_of_the_list_is_not_installed";
    let mut installer = Installer::start(test, folder.path(), &server, &package.integrity);
    // It may ask more than once.
    std::thread::spawn(move || {
        let mut other = package.archive;
        *other.last_mut().unwrap() ^= 1;
        server.asked.iter().for_each(|request| answer(request, &other));
    });
    let said = installer.says("failed: ");
    assert!(said.contains("installing npm packages failed") && said.contains("EINTEGRITY"), "{said}");
    assert_eq!(there(folder.path()), Vec::<String>::new());
}
