//! The file of accepted declarations. The operator accepts what a server declares, and only that is offered.
//!
//! ```json
//! {"format":1,"upstreams":{"github":[{"digest":"sha256:…","declaration":{"name":"create_issue",…}}]}}
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Declaration;

const FORMAT: u32 = 1;

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

/// The accepted declarations of all upstreams, by the server's own names.
#[derive(Debug, Default)]
pub(crate) struct Accepted(BTreeMap<String, BTreeMap<String, Declaration>>);

impl Accepted {
    /// The accepted tools of an upstream. `None`: none of it was ever accepted.
    pub(crate) fn of(&self, upstream: &str) -> Option<&BTreeMap<String, Declaration>> {
        self.0.get(upstream)
    }
}

/// The file, which is read again when it changes.
#[derive(Debug)]
pub struct Pins {
    path: PathBuf,
    read: Mutex<(Option<Stamp>, Arc<Accepted>)>,
}

/// The marks of one version of a file.
type Stamp = (u64, u64, Option<SystemTime>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    upstreams: BTreeMap<String, Vec<Pin>>,
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
        Ok(Self { path, read: Mutex::new((stamp, accepted)) })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The accepted declarations now. A file that cannot be read leaves the earlier ones.
    pub(crate) fn current(&self) -> Arc<Accepted> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if stamp != known.0 {
            match read(&self.path) {
                Ok(accepted) => known.1 = Arc::new(accepted),
                Err(fault) => tracing::error!(%fault, "the accepted upstream tools stay as they were"),
            }
            known.0 = stamp;
        }
        known.1.clone()
    }

    /// Accepts these tools of an upstream, and no others.
    ///
    /// # Errors
    /// [`PinsFault`]. The file is then as it was.
    pub fn accept(&self, upstream: &str, tools: &[Declaration]) -> Result<(), PinsFault> {
        let failed = |source: io::Error| PinsFault::Io { path: self.path.clone(), source };
        let mut file = File { format: FORMAT, upstreams: BTreeMap::new() };
        for (name, tools) in &read(&self.path)?.0 {
            file.upstreams.insert(name.clone(), pins(tools.values()).map_err(|error| failed(error.into()))?);
        }
        file.upstreams.insert(upstream.to_owned(), pins(tools).map_err(|error| failed(error.into()))?);
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

fn pins<'a>(tools: impl IntoIterator<Item = &'a Declaration>) -> Result<Vec<Pin>, serde_json::Error> {
    let pin = |tool: &Declaration| Ok(Pin { digest: tool.digest().to_string(), declaration: tool.to_raw()? });
    tools.into_iter().map(pin).collect()
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
    let head: Head = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if head.format != FORMAT {
        return Err(format!("it has the format {}, and this version reads {FORMAT}", head.format));
    }
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut all = BTreeMap::new();
    for (upstream, pins) in file.upstreams {
        let mut tools = BTreeMap::new();
        for Pin { digest, declaration } in pins {
            let tool = Declaration::read(declaration.get()).map_err(|why| format!("a tool of {upstream}: {why}"))?;
            if tool.digest().to_string() != digest {
                let name = escape::quoted(tool.name(), 80);
                return Err(format!("the declaration of {name} of {upstream} does not have its digest"));
            }
            tools.insert(tool.name().to_owned(), tool);
        }
        all.insert(upstream, tools);
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

    #[test]
    fn accepted_declarations_are_read_again_verbatim() {
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::open(folder.path().join("a.json")).unwrap();
        assert!(pins.current().of("one").is_none());
        pins.accept("one", &[tool("b")]).unwrap();
        pins.accept("two", &[]).unwrap();
        let current = pins.current();
        let read = &current.of("one").unwrap()["a"];
        assert_eq!((read.digest(), read.input_schema()), (tool("b").digest(), r#"{"type":"object","x":1.10}"#));
        assert!(current.of("two").unwrap().is_empty());
    }

    #[test]
    fn changed_or_newer_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        Pins::open(path.clone()).unwrap().accept("one", &[tool("good")]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to) in [("good", "evil"), ("\"format\": 1", "\"format\": 2"), ("\"format\"", "\"fromat\"")] {
            std::fs::write(&path, text.replace(from, to)).unwrap();
            assert!(matches!(Pins::open(path.clone()), Err(PinsFault::Damaged { .. })), "{to}");
        }
    }

    #[test]
    fn damaged_file_leaves_the_accepted_tools() {
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::open(folder.path().join("a.json")).unwrap();
        pins.accept("one", &[tool("b")]).unwrap();
        assert!(pins.current().of("one").is_some());
        std::fs::write(pins.path(), "{").unwrap();
        assert!(pins.current().of("one").is_some());
        assert!(pins.accept("two", &[]).is_err());
    }
}
