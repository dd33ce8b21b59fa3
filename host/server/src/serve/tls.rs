//! TLS with the operator's certificate. A connection that arrives after the files have changed gets the new certificate.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
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

/// A certificate that is read again when its files change.
pub struct Tls {
    files: TlsFiles,
    current: Mutex<Current>,
}

struct Current {
    /// The files when they were last read, or were last found to be unusable.
    seen: [Stamp; 2],
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads the certificate.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let seen = files.stamps();
        let config = files.read()?;
        Ok(Self { files, current: Mutex::new(Current { seen, config }) })
    }

    /// For one connection. If the files have changed and cannot be used, the certificate from before stays in use.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken before the files are read: a change in between is noticed at the next connection.
        let seen = self.files.stamps();
        if seen != current.seen {
            current.seen = seen;
            match self.files.read() {
                Ok(config) => {
                    current.config = config;
                    tracing::info!(file = %self.files.certificate.display(), "a new certificate is in use");
                }
                Err(error) => tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the certificate has changed and cannot be used; the one from before stays in use"
                ),
            }
        }
        TlsAcceptor::from(current.config.clone())
    }
}

impl TlsFiles {
    fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let text =
            |file: &PathBuf| fs::read(file).map_err(|reason| TlsError::Unreadable { file: file.clone(), reason });
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

fn stamp(file: &Path) -> Stamp {
    let metadata = fs::metadata(file).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Some((metadata.len(), metadata.modified().ok(), inode))
}
