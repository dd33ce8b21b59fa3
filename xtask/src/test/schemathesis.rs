//! Tests the API against its own description: schemathesis sends a running host requests that `/openapi.json` allows and forbids.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::tools::Tool;
use crate::workspace::{GUEST_TARGET, Invocation, binary, root};

const SCHEMATHESIS: Tool = Tool {
    name: "schemathesis",
    program: "schemathesis",
    requirements: "tests/schemathesis/requirements.txt",
    part: "schemathesis",
};

/// The plugins of the host, which have a tool of every executor.
const PLUGINS: [&str; 4] = ["ask", "browser", "textkit", "websearch"];

/// The checks of every response.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance";

/// Requests for each endpoint, besides those for the bounds of each parameter.
const EXAMPLES: u32 = 15;

/// The interval and the number of attempts to reach a starting host: a minute in all.
const PROBE: (Duration, u32) = (Duration::from_millis(100), 600);

/// Runs it as the admin, who may use every endpoint, and as a caller, who may not.
pub(crate) fn run() -> Result<()> {
    let program = SCHEMATHESIS.installed()?;
    let host = Host::start()?;
    for (who, token) in [("the admin", host.admin()?), ("a caller", host.caller()?)] {
        console::line(&format!("as {who}, at {}", host.address));
        let run = Invocation::new("")
            .program(&program)
            // It writes its findings to the folder where it runs.
            .in_folder("target/schemathesis")
            // A stream does not end, and a host that drains answers 503.
            .words(&format!("run http://{}/openapi.json --exclude-path-regex (events|drain)$", host.address))
            .words(&format!("--checks {CHECKS} --max-examples {EXAMPLES} --seed 1 --continue-on-failure"))
            .words("--phases coverage,fuzzing --request-timeout 20 --no-shrink --no-color --warnings off --header")
            .word(&format!("Authorization: Bearer {token}"))
            .variable("SCHEMATHESIS_HOOKS", root().join("tests/schemathesis/hooks.py").display().to_string());
        run.run().with_context(|| format!("the host's log is {}", host.log.display()))?;
    }
    Ok(())
}

/// A host on a free port with an empty data folder. Dropping it kills the process.
struct Host {
    process: Child,
    program: PathBuf,
    folder: PathBuf,
    log: PathBuf,
    address: String,
}

impl Host {
    fn start() -> Result<Self> {
        let folder = root().join("target/schemathesis");
        let _ = fs::remove_dir_all(&folder);
        let plugins = folder.join("plugins");
        fs::create_dir_all(&plugins).with_context(|| format!("could not make {}", plugins.display()))?;
        for name in PLUGINS {
            let file = format!("{name}.wasm");
            let built = root().join("plugins/target").join(GUEST_TARGET).join("release").join(&file);
            fs::copy(&built, plugins.join(&file))
                .with_context(|| format!("could not copy {}; the part `guests` builds it", built.display()))?;
        }
        let (program, log) = (binary("toolgate")?, folder.join("host.log"));
        let output = File::create(&log).with_context(|| format!("could not make {}", log.display()))?;
        let errors = output.try_clone().context("could not share the host's log")?;
        let process = Command::new(&program)
            .args(["serve", "--listen", "127.0.0.1:0", "--plugins"])
            .arg(&plugins)
            .arg("--data")
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("could not start {}; the part `build` builds it", program.display()))?;
        let mut host = Self { process, program, folder, log, address: String::new() };
        host.address = host.listening()?;
        Ok(host)
    }

    /// Waits until it is ready, and returns the address. Before, `/readyz` has status 503, which is no fault.
    fn listening(&mut self) -> Result<String> {
        for _ in 0..PROBE.1 {
            if let Some(status) = self.process.try_wait().context("could not look after the host")? {
                bail!("the host ended with {status}; its log is {}", self.log.display());
            }
            let said = self.read("data/address").map(|address| address.trim_start_matches("http://").to_owned());
            if let Ok(address) = said
                && self.read("data/admin-token").is_ok()
                && is_ready(&address).unwrap_or(false)
            {
                return Ok(address);
            }
            std::thread::sleep(PROBE.0);
        }
        bail!("the host is not ready; its log is {}", self.log.display())
    }

    fn admin(&self) -> Result<String> {
        self.read("data/admin-token")
    }

    fn caller(&self) -> Result<String> {
        let create = Invocation::new("").program(&self.program).words("token create --name agent --role caller --data");
        Ok(create.word(&self.folder.join("data").display().to_string()).output()?.trim().to_owned())
    }

    fn read(&self, file: &str) -> Result<String> {
        let path: &Path = &self.folder.join(file);
        Ok(fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?.trim().to_owned())
    }
}

/// Whether the host at this address is ready.
fn is_ready(address: &str) -> io::Result<bool> {
    let mut host = TcpStream::connect(address)?;
    write!(host, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    host.read_to_string(&mut response)?;
    Ok(response.starts_with("HTTP/1.1 200 "))
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}
