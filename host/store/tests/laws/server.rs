//! A private PostgreSQL server for the tests of one process. A shell guards it: when the process ends, also by a kill, the pipe
//! to the shell closes, and the shell stops the server and removes its folder.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// Starts a server in a new folder, says so, and stops it when the standard input ends. PostgreSQL refuses to run as root, so root
/// runs it as the user `nobody`. The folder is in memory if possible: then a sync of the disk takes no time, and the server
/// has the settings of a server that keeps its commits. The role `locked` needs its password. With a port, the server has TLS. With the
/// folder of another server, it begins with a base backup of that one, and with `-R` it is its standby.
const GUARD: &str = r#"
trap '' INT TERM HUP
umask 077
folder=$(mktemp -d "$1/toolgate-pg-XXXXXX") || exit 1
as=
if [ "$(id -u)" = 0 ]; then
    chown 65534:65534 "$folder"
    as='setpriv --reuid=65534 --regid=65534 --clear-groups'
fi
cd "$folder"
end() { rm -rf "$folder"; exit "$1"; }
if [ -n "$5" ]; then
    $as "$2/pg_basebackup" -h "$5" -U toolgate -D "$folder/data" $6 --no-sync -c fast >"$folder/log" 2>&1
else
    $as "$2/initdb" -D "$folder/data" -U toolgate -A trust -E UTF8 --locale=C --no-sync >"$folder/log" 2>&1
fi || { cat "$folder/log" >&2; end 1; }
printf 'local all locked scram-sha-256\nlocal replication all trust\nlocal all all trust\nhost all all all trust\n' \
    >"$folder/data/pg_hba.conf"
network='-c listen_addresses='
if [ -n "$4" ]; then
    export PGPORT="$4"
    printf '[req]\ndistinguished_name = name\n[name]\n' | openssl req -config /dev/stdin -x509 -days 2 -subj /CN=localhost \
        -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -addext subjectAltName=DNS:localhost \
        -addext basicConstraints=critical,CA:FALSE -keyout "$folder/key.pem" -out "$folder/certificate.pem" 2>>"$folder/log" ||
        { cat "$folder/log" >&2; end 1; }
    [ -z "$as" ] || chown 65534:65534 "$folder/key.pem" "$folder/certificate.pem"
    network="-c listen_addresses=127.0.0.1 -c ssl=on -c ssl_key_file=$folder/key.pem -c ssl_cert_file=$folder/certificate.pem"
fi
$as "$2/postgres" -D "$folder/data" -k "$folder" $network -c max_connections=1000 -c shared_buffers=64MB \
    $3 >>"$folder/log" 2>&1 </dev/null &
server=$!
tries=0
until $as "$2/pg_isready" -q -h "$folder" -d postgres; do
    tries=$((tries + 1))
    if [ "$tries" = 300 ] || ! kill -0 "$server" 2>/dev/null; then cat "$folder/log" >&2; end 1; fi
    sleep 0.05
done
echo "$folder"
read -r _
kill -INT "$server" 2>/dev/null
wait "$server"
end 0
"#;

/// The folder of the server.
static SERVER: OnceLock<PathBuf> = OnceLock::new();

/// The shells, by the folders of their servers. The process keeps its ends of the pipes until it ends.
static GUARDS: Mutex<BTreeMap<PathBuf, Child>> = Mutex::new(BTreeMap::new());

/// A new empty database. Returns its name and its connection string.
pub(crate) fn database() -> (String, String) {
    copy("template0")
}

/// A copy of a database that nobody uses. Returns its name and its connection string.
pub(crate) fn copy(template: &str) -> (String, String) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    run("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
    let url = url(folder(), &name);
    (name, url)
}

pub(crate) fn url(folder: &Path, database: &str) -> String {
    format!("postgres:///{database}?user=toolgate&host={}", folder.display())
}

/// Runs a statement as the owner of the server. Returns its rows.
pub(crate) fn run(database: &str, statement: &str) -> String {
    run_at(folder(), database, statement)
}

pub(crate) fn run_at(folder: &Path, database: &str, statement: &str) -> String {
    try_run(folder, database, statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
}

pub(crate) fn try_run(folder: &Path, database: &str, statement: &str) -> Result<String, String> {
    let mut psql = Command::new(programs().join("psql"));
    psql.args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-U", "toolgate", "-d", database, "-c", statement]);
    let done = psql.arg("-h").arg(folder).output().unwrap();
    let output = if done.status.success() { &done.stdout } else { &done.stderr };
    let output = String::from_utf8_lossy(output).trim().to_owned();
    if done.status.success() { Ok(output) } else { Err(output) }
}

/// The folder of the server of this process, with its socket.
pub(crate) fn folder() -> &'static Path {
    SERVER.get_or_init(|| start(""))
}

/// Starts a server with these options. It ends with this process.
pub(crate) fn start(options: &str) -> PathBuf {
    let Some(folder) = started(options, None) else {
        panic!("PostgreSQL does not start; to leave it out: cargo xtask test --without postgres")
    };
    folder
}

/// Starts a standby of a server. It ends with this process.
#[allow(dead_code, reason = "few tests need one")]
pub(crate) fn standby(of: &Path) -> PathBuf {
    started_in(&parent(), "", None, Some((of, "-R"))).unwrap_or_else(|| panic!("the standby does not start"))
}

/// Starts a server on a base backup of another one. It ends with this process.
#[allow(dead_code, reason = "few tests need one")]
pub(crate) fn copied(from: &Path) -> Option<PathBuf> {
    started_in(&parent(), "", None, Some((from, "")))
}

/// Starts a server, with TLS on a port of `127.0.0.1` if there is one. Returns its folder. `None`: it does not start.
pub(crate) fn started(options: &str, port: Option<u16>) -> Option<PathBuf> {
    started_in(&parent(), options, port, None)
}

fn parent() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Stops a server before the end of this process, and removes its folder.
#[allow(dead_code, reason = "few tests start many")]
pub(crate) fn stop(folder: &Path) {
    let guard = GUARDS.lock().unwrap().remove(folder);
    // This closes the pipe first.
    guard.unwrap().wait().unwrap();
}

/// As [`started`], with its files in this folder. It can begin with a base backup of another server, which is made with this option.
pub(crate) fn started_in(
    parent: &Path,
    options: &str,
    port: Option<u16>,
    of: Option<(&Path, &str)>,
) -> Option<PathBuf> {
    let mut guard = Command::new("sh");
    guard.args(["-c", GUARD, "guard"]).arg(parent).arg(programs()).arg(options);
    guard.arg(port.map(|port| port.to_string()).unwrap_or_default());
    if let Some((server, option)) = of {
        guard.arg(server).arg(option);
    }
    // A signal of the terminal goes to this process alone.
    let mut guard = guard.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut folder = String::new();
    BufReader::new(guard.stdout.take().unwrap()).read_line(&mut folder).unwrap();
    if folder.is_empty() {
        guard.wait().unwrap();
        return None;
    }
    let folder = PathBuf::from(folder.trim_end());
    GUARDS.lock().unwrap().insert(folder.clone(), guard);
    Some(folder)
}

/// The folder of the programs: that of the path, or the newest of Debian's. A server before version 14 is left out, because hosts do
/// not use it.
pub(crate) fn programs() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let on_path = Command::new("sh").args(["-c", "readlink -f \"$(command -v postgres)\""]).output().unwrap();
        let on_path = PathBuf::from(String::from_utf8(on_path.stdout).unwrap().trim());
        let of_debian = || {
            let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
            let servers = versions.map(|version| version.path().join("bin/postgres"));
            servers.filter_map(|server| Some((major(&server)?, server))).max()
        };
        let found = major(&on_path).map(|version| (version, on_path)).filter(is_usable).or_else(of_debian);
        let found = found.filter(is_usable).and_then(|(_, server)| server.parent().map(Path::to_owned));
        let install = "apt-get install postgresql, or cargo xtask test --without postgres";
        found.unwrap_or_else(|| panic!("PostgreSQL 14 or newer is not installed: {install}"))
    })
}

fn is_usable((version, _): &(u32, PathBuf)) -> bool {
    *version >= 14
}

/// The major version that a server says.
fn major(server: &Path) -> Option<u32> {
    let said = String::from_utf8(Command::new(server).arg("--version").output().ok()?.stdout).ok()?;
    let version = said.strip_prefix("postgres (PostgreSQL) ")?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
