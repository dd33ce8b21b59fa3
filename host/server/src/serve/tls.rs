//! TLS with the operator's certificate. A connection that arrives after the files have changed gets the new certificate.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio_rustls::TlsAcceptor;

/// The files of a certificate, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those of its authorities.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Why certificate files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}", file.display())]
    Unreadable {
        file: PathBuf,
        #[source]
        reason: io::Error,
    },
    #[error("{} has no {what} in PEM: {reason}", file.display())]
    NotPem { file: PathBuf, what: &'static str, reason: pem::Error },
    #[error("the certificate in {} cannot be used with the key in {}", files.certificate.display(), files.key.display())]
    Unusable {
        files: TlsFiles,
        #[source]
        reason: rustls::Error,
    },
}

/// Distinguishes states of a file without reading it.
type Stamp = Option<(u64, Option<SystemTime>, u64)>;

/// The size of the largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A certificate that is read again when its files change.
pub struct Tls {
    files: TlsFiles,
    config: Mutex<Arc<ServerConfig>>,
    /// The files when they were last read, or were last found to be unusable. Locked by the connection that looks at them.
    seen: Arc<AsyncMutex<[Stamp; 2]>>,
}

impl Tls {
    /// Reads the certificate.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let seen = files.stamps();
        let config = files.read()?;
        Ok(Self { files, config: Mutex::new(config), seen: Arc::new(AsyncMutex::new(seen)) })
    }

    /// For one connection. If the files have changed and cannot be used, the certificate from before stays in use. One
    /// connection at a time looks at the files, so a disk that hangs delays one connection and occupies one thread.
    pub(super) async fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        if let Ok(seen) = self.seen.clone().try_lock_owned() {
            let tls = self.clone();
            // It fails only if it panics, and then the certificate from before stays in use.
            let _ = tokio::task::spawn_blocking(move || tls.refresh(seen)).await;
        }
        TlsAcceptor::from(self.config.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Reads the files if they have changed.
    fn refresh(&self, mut seen: OwnedMutexGuard<[Stamp; 2]>) {
        // Taken before the files are read: a change in between is noticed at the next connection.
        let now = self.files.stamps();
        if *seen == now {
            return;
        }
        *seen = now;
        match self.files.read() {
            Ok(config) => {
                *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
                tracing::info!(file = %self.files.certificate.display(), "a new certificate is in use");
            }
            Err(error) => tracing::error!(
                error = &error as &dyn std::error::Error,
                "the certificate has changed and cannot be used; the one from before stays in use"
            ),
        }
    }
}

impl TlsFiles {
    fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let text = |file: &PathBuf| read(file).map_err(|reason| TlsError::Unreadable { file: file.clone(), reason });
        let (certificate, key) = (text(&self.certificate)?, text(&self.key)?);
        let not_pem = |file: &PathBuf, what| {
            let file = file.clone();
            move |reason| TlsError::NotPem { file, what, reason }
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&certificate)
            .collect::<Result<_, _>>()
            .and_then(|chain: Vec<_>| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) })
            .map_err(not_pem(&self.certificate, "certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(not_pem(&self.key, "private key"))?;
        let unusable = |reason| TlsError::Unusable { files: self.clone(), reason };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn stamps(&self) -> [Stamp; 2] {
        [&self.certificate, &self.key].map(|file| stamp(file))
    }
}

/// Reads a regular file. A pipe in its place would wait until somebody writes to it.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, i32::from_ne_bytes(flags.to_ne_bytes()));
    }
    let file = options.open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

fn stamp(file: &Path) -> Stamp {
    let metadata = fs::metadata(file).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Some((metadata.len(), metadata.modified().ok(), inode))
}
