//! `pack`: a component that carries what it declares and what it wants.

use std::num::NonZeroU32;
use std::path::Path;

use anyhow::Context as _;
use domain::Digest;
use registry::{PackError, Registry};
use toolgate::config::{Config, manifest};

use crate::args::Pack;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

pub(super) fn run(args: &Pack, terminal: &Terminal) -> Result<(), Report> {
    let manifest = args.manifest.as_deref().map(manifest).transpose()?;
    let bytes = std::fs::read(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    let mut config = Config::default();
    config.pool = NonZeroU32::new(4);
    let sandbox = toolgate::checking_sandbox(&config, Some(super::compiler()?)).map_err(anyhow::Error::from)?;
    let packed = Registry::pack(&sandbox, &bytes, manifest).map_err(|error| refused(&args.file, &error))?;
    let out = args.out.as_deref().unwrap_or(&args.file);
    write(out, &packed.bytes).with_context(|| format!("cannot write {}", out.display()))?;
    let shown = text::line(&out.display().to_string()).into_owned();
    let tools: Vec<_> = packed.tools.iter().map(|tool| text::line(tool).into_owned()).collect();
    terminal.line(format!("{} {shown}: {}", terminal.ink(Ink::Good, "packed"), tools.join(", ")))?;
    terminal.line(format!("  component {}", Digest::of(&packed.bytes)))?;
    Ok(())
}

fn refused(file: &Path, error: &PackError) -> Report {
    let exit = if matches!(error, PackError::Host(_)) { Exit::HostFault } else { Exit::Refused };
    let report = Report::new(exit, format!("{} cannot be packed", file.display())).because(error);
    match std::error::Error::source(error) {
        Some(source) => report.because(source),
        None => report,
    }
}

/// Whoever looks sees the old file or the new one: a host may be watching the folder.
fn write(out: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let beside = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".toolgate-pack-").tempfile_in(beside)?;
    std::io::Write::write_all(&mut file, bytes)?;
    #[cfg(unix)]
    std::fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.persist(out).map(drop).map_err(|error| error.error)
}
