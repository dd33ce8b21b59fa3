//! Connections to checked addresses. No connection outlasts its request and no TLS session is resumed, so that no call
//! finds anything of another.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Host;
use wasmtime_wasi_http::Error;

use super::resolve::Lookups;
use super::{Resolver, Scheme};

/// Sends the requests of guests. One for each process is enough.
#[derive(Clone)]
pub struct HttpClient(Arc<Shared>);

struct Shared {
    runtime: Handle,
    lookups: Lookups,
    tls: TlsConnector,
}

/// A certificate that cannot be trusted, whatever the operator says.
#[derive(Debug, thiserror::Error)]
#[error("this is no certificate of an authority")]
pub struct InvalidAuthority(#[source] rustls::Error);

/// How long one of several addresses is tried before the next one.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a request is sent over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl HttpClient {
    /// A client that connects on `runtime`, which needs its I/O and time, to addresses that `resolver` finds. Servers are
    /// believed by the authorities of Mozilla's list, and by `authorities` besides: certificates in DER.
    ///
    /// # Errors
    /// When one of the authorities is no certificate.
    pub fn new(
        runtime: Handle,
        resolver: Arc<dyn Resolver>,
        authorities: &[Vec<u8>],
    ) -> Result<Self, InvalidAuthority> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
        for certificate in authorities {
            roots.add(CertificateDer::from(certificate.as_slice())).map_err(InvalidAuthority)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(InvalidAuthority)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self(Arc::new(Shared { runtime, lookups: Lookups::new(resolver), tls: Arc::new(config).into() })))
    }

    /// Where requests are sent.
    pub(super) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    pub(super) fn lookups(&self) -> &Lookups {
        &self.0.lookups
    }

    /// A connection to one of these addresses, under TLS if the scheme says so, to a server that proves to be the host.
    pub(super) async fn connect(
        &self,
        scheme: Scheme,
        host: &Host<String>,
        addresses: &[SocketAddr],
    ) -> Result<Box<dyn Stream>, Error> {
        let stream = reach(addresses).await?;
        // What is not sent at once is waited for by somebody.
        let _ = stream.set_nodelay(true);
        if scheme == Scheme::Http {
            return Ok(Box::new(stream));
        }
        let name = match host {
            Host::Domain(name) => ServerName::try_from(name.clone()).map_err(|_| Error::HttpRequestUriInvalid)?,
            Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(*address)),
            Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(*address)),
        };
        match self.0.tls.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(tls_error(&error)),
        }
    }
}

/// Connects to the first address that answers.
async fn reach(addresses: &[SocketAddr]) -> Result<TcpStream, Error> {
    let mut last = Error::DestinationNotFound;
    for (index, address) in addresses.iter().enumerate() {
        let connecting = TcpStream::connect(*address);
        let connected =
            if index + 1 == addresses.len() { Ok(connecting.await) } else { timeout(PATIENCE, connecting).await };
        last = match connected {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
            Ok(Err(_)) => Error::DestinationUnavailable,
            Err(_) => Error::ConnectionTimeout,
        };
    }
    Err(last)
}

fn tls_error(error: &io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            Error::TlsCertificateError
        }
        Some(rustls::Error::AlertReceived(alert)) => {
            Error::TlsAlertReceived { alert_id: Some((*alert).into()), alert_message: None }
        }
        _ => Error::TlsProtocolError,
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}
