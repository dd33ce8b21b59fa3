//! The file of accepted servers. The operator accepts a server's target and what it declares, and only that is offered.
//!
//! ```json
//! {"format":2,"upstreams":{"github":{"target":{"command":["…"]},"tools":[{"digest":"sha256:…","declaration":{"name":"create_issue",…}}]}}}
//! ```
//!
//! Files of format 1 have only tools. They are read, and such an acceptance covers no target. The next acceptance writes format 2.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use domain::Digest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Declaration, Target};

const FORMAT: u32 = 2;

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinsFault {
    #[error("cannot read or write {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is damaged: {why}; restore it, or remove it and accept the upstreams again", path.display())]
    Damaged { path: PathBuf, why: String },
}

/// The accepted servers, by the names of the upstreams.
#[derive(Debug, Default)]
pub(crate) struct Accepted(BTreeMap<String, AcceptedServer>);

/// The accepted target and tools of one server.
#[derive(Debug, Clone, Default)]
pub struct AcceptedServer {
    /// `None` in a file of format 1.
    pub(crate) target: Option<Target>,
    /// By the server's own names.
    pub(crate) tools: BTreeMap<String, Declaration>,
}

impl AcceptedServer {
    /// The number of tools.
    #[must_use]
    pub fn count(&self) -> usize {
        self.tools.len()
    }

    /// The same for all hosts that accept the same. The places of secrets may differ.
    pub(crate) fn digest(&self) -> Digest {
        let target = self.target.clone().map(|target| Target { secrets: BTreeSet::new(), ..target });
        // The fields of a target have one order, and its maps are sorted.
        let target = serde_json::to_vec(&target).unwrap_or_default();
        let tools: Vec<Digest> = self.tools.values().map(Declaration::digest).collect();
        let parts = tools.iter().map(|tool| tool.as_bytes().as_slice());
        Digest::of_parts(&std::iter::once(target.as_slice()).chain(parts).collect::<Vec<_>>())
    }
}

impl PartialEq for AcceptedServer {
    fn eq(&self, other: &Self) -> bool {
        let digests = |server: &Self| server.tools.values().map(Declaration::digest).collect::<Vec<_>>();
        self.target == other.target && digests(self) == digests(other)
    }
}

impl Accepted {
    /// The acceptance of an upstream. `None`: none of it was ever accepted.
    pub(crate) fn of(&self, upstream: &str) -> Option<&AcceptedServer> {
        self.0.get(upstream)
    }
}

/// The file, and what it said when it was last read.
#[derive(Debug)]
pub struct Pins {
    path: PathBuf,
    current: Mutex<Arc<Accepted>>,
    /// Held while the file is read, so that an older content never follows a newer one.
    stamp: Mutex<Option<Stamp>>,
}

/// The marks of one version of a file.
type Stamp = (u64, u64, Option<SystemTime>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    upstreams: BTreeMap<String, StoredServer>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredServer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    tools: Vec<Pin>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    digest: String,
    declaration: Box<RawValue>,
}

impl Pins {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// [`PinsFault`].
    pub fn open(path: PathBuf) -> Result<Self, PinsFault> {
        let stamp = stamp(&path);
        let accepted = Arc::new(read(&path)?);
        Ok(Self { path, current: Mutex::new(accepted), stamp: Mutex::new(stamp) })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The acceptances when the file was last read. Cheap.
    pub(crate) fn current(&self) -> Arc<Accepted> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the file if it has changed. A file that cannot be read leaves what was accepted before. Blocks.
    pub(crate) fn refresh(&self) {
        let mut known = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if stamp == *known {
            return;
        }
        match read(&self.path) {
            Ok(accepted) => {
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(accepted);
            }
            Err(fault) => tracing::error!(%fault, "the accepted upstream tools stay as they were"),
        }
        *known = stamp;
    }

    /// Accepts this of an upstream, and nothing else of it.
    ///
    /// # Errors
    /// [`PinsFault`]. The file is then as it was.
    pub fn accept(&self, upstream: &str, accepted: &AcceptedServer) -> Result<(), PinsFault> {
        let failed = |source: io::Error| PinsFault::Io { path: self.path.clone(), source };
        let mut all = read(&self.path)?.0;
        all.insert(upstream.to_owned(), accepted.clone());
        let stored = |(name, server): (String, AcceptedServer)| Ok((name, stored(server)?));
        let upstreams = all.into_iter().map(stored).collect::<Result<_, serde_json::Error>>();
        let file = File { format: FORMAT, upstreams: upstreams.map_err(|error| failed(error.into()))? };
        let text = serde_json::to_string_pretty(&file).map_err(|error| failed(error.into()))?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let write = || -> io::Result<()> {
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            new.write_all(text.as_bytes())?;
            new.write_all(b"\n")?;
            new.as_file().sync_all()?;
            new.persist(&self.path)?;
            Ok(())
        };
        write().map_err(failed)
    }
}

fn stored(server: AcceptedServer) -> Result<StoredServer, serde_json::Error> {
    let pin = |tool: &Declaration| Ok(Pin { digest: tool.digest().to_string(), declaration: tool.to_raw()? });
    let tools = server.tools.values().map(pin).collect::<Result<_, serde_json::Error>>()?;
    Ok(StoredServer { target: server.target, tools })
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.len(), found.modified().ok()))
}

fn read(path: &Path) -> Result<Accepted, PinsFault> {
    let failed = |source| PinsFault::Io { path: path.to_owned(), source };
    let damaged = |why: String| PinsFault::Damaged { path: path.to_owned(), why };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Accepted::default()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.is_file() || found.len() > MAX_FILE => {
            return Err(damaged(format!("it is not a file of at most {MAX_FILE} bytes")));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    parse(&text).map_err(damaged)
}

fn parse(text: &str) -> Result<Accepted, String> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File1 {
        #[serde(rename = "format")]
        _format: u32,
        upstreams: BTreeMap<String, Vec<Pin>>,
    }
    let fault = |error: serde_json::Error| error.to_string();
    let Head { format } = serde_json::from_str(text).map_err(fault)?;
    let upstreams = match format {
        1 => {
            let old: File1 = serde_json::from_str(text).map_err(fault)?;
            let migrated = |(name, tools)| (name, StoredServer { target: None, tools });
            old.upstreams.into_iter().map(migrated).collect()
        }
        FORMAT => serde_json::from_str::<File>(text).map_err(fault)?.upstreams,
        _ => return Err(format!("it has the format {format}, and this version reads 1 and {FORMAT}")),
    };
    let mut all = BTreeMap::new();
    for (upstream, StoredServer { target, tools: pins }) in upstreams {
        let mut tools = BTreeMap::new();
        for Pin { digest, declaration } in pins {
            let tool = Declaration::read(declaration.get()).map_err(|why| format!("a tool of {upstream}: {why}"))?;
            if tool.digest().to_string() != digest {
                let name = escape::quoted(tool.name(), 80);
                return Err(format!("the declaration of {name} of {upstream} does not have its digest"));
            }
            tools.insert(tool.name().to_owned(), tool);
        }
        all.insert(upstream, AcceptedServer { target, tools });
    }
    Ok(Accepted(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(description: &str) -> Declaration {
        let text =
            format!(r#"{{"name":"a","description":"{description}","inputSchema":{{"type":"object","x":1.10}}}}"#);
        Declaration::read(&text).unwrap()
    }

    fn server(description: &str) -> AcceptedServer {
        let target = Some(Target { command: vec!["a".to_owned()], ..Target::default() });
        AcceptedServer { target, tools: [("a".to_owned(), tool(description))].into() }
    }

    fn refreshed(pins: &Pins) -> Arc<Accepted> {
        pins.refresh();
        pins.current()
    }

    #[test]
    fn accepted_declarations_are_read_again_verbatim() {
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::open(folder.path().join("a.json")).unwrap();
        assert!(pins.current().of("one").is_none());
        pins.accept("one", &server("b")).unwrap();
        pins.accept("two", &AcceptedServer::default()).unwrap();
        assert!(pins.current().of("one").is_none(), "only `refresh` reads the file");
        let current = refreshed(&pins);
        let read = &current.of("one").unwrap();
        assert_eq!(read.tools["a"].input_schema(), r#"{"type":"object","x":1.10}"#);
        assert!(**read == server("b") && **read != server("c"));
        assert!(current.of("two").unwrap().tools.is_empty());
    }

    #[test]
    fn digest_has_the_target_and_the_tools_but_no_secrets() {
        let (one, target) = (server("b"), server("b").target.unwrap());
        let of_target = |target| AcceptedServer { target: Some(target), ..one.clone() }.digest();
        let secrets = ["the file token".to_owned()].into();
        assert_eq!(one.digest(), of_target(Target { secrets, ..target.clone() }));
        let others = [
            of_target(Target { command: vec!["b".to_owned()], ..target }),
            AcceptedServer { target: None, ..one.clone() }.digest(),
            server("c").digest(),
            AcceptedServer::default().digest(),
        ];
        assert!(others.iter().all(|other| *other != one.digest()));
    }

    #[test]
    fn changed_or_newer_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        Pins::open(path.clone()).unwrap().accept("one", &server("good")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("good", "evil"),
            ("\"format\": 2", "\"format\": 3"),
            ("\"format\": 2", "\"format\": 1"),
            ("\"format\"", "\"fromat\""),
            ("\"command\"", "\"comand\""),
        ] {
            std::fs::write(&path, text.replace(from, to)).unwrap();
            assert!(matches!(Pins::open(path.clone()), Err(PinsFault::Damaged { .. })), "{to}");
        }
    }

    #[test]
    fn file_of_format_1_is_read_and_migrated() {
        // Written by the version before format 2.
        let old = r#"{
  "format": 1,
  "upstreams": {
    "one": [
      {
        "digest": "sha256:4df72c5f2473e21dde992314aa3eac48aa1bf73c035fc60845a8edc7ccdfded7",
        "declaration": {"name":"a.b","description":"A name that models refuse.","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"number":{"type":"number"}}},"annotations":{"readOnlyHint":true,"idempotentHint":true}}
      }
    ]
  }
}
"#;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, old).unwrap();
        let pins = Pins::open(path.clone()).unwrap();
        let of_one = pins.current().of("one").unwrap().clone();
        assert_eq!((of_one.target.as_ref(), of_one.tools.len()), (None, 1));
        pins.accept("two", &server("b")).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("\"format\": 2"));
        let current = refreshed(&pins);
        assert!(*current.of("one").unwrap() == of_one, "an acceptance of another server adds no target");
        assert!(*current.of("two").unwrap() == server("b"));
    }

    #[test]
    fn damaged_file_leaves_the_accepted_tools() {
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::open(folder.path().join("a.json")).unwrap();
        pins.accept("one", &server("b")).unwrap();
        assert!(refreshed(&pins).of("one").is_some());
        std::fs::write(pins.path(), "{").unwrap();
        assert!(refreshed(&pins).of("one").is_some());
        assert!(pins.accept("two", &AcceptedServer::default()).is_err());
    }
}
