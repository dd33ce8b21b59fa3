//! Connections to checked addresses. Each connection serves one request and no TLS session is resumed, so that calls share
//! nothing.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::PluginName;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Host;
use wasmtime_wasi_http::Error;

use super::lookup::Lookups;
use super::{Resolver, Scheme};
use crate::fair_share::FairShare;
use crate::per_plugin::PerPlugin;

/// Sends the requests of guests. One client for each process is enough.
#[derive(Clone)]
pub struct HttpClient(Arc<Shared>);

struct Shared {
    runtime: Handle,
    lookups: Lookups,
    shares: PerPlugin<FairShare>,
    tls: TlsConnector,
}

/// The operator named an authority whose certificate cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("this is not a valid certificate of an authority")]
pub struct InvalidAuthority(#[source] rustls::Error);

/// The time to connect to each of several addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl HttpClient {
    /// A client that connects on `runtime`, which needs I/O and time, to addresses that `resolver` finds. It trusts Mozilla's list
    /// of authorities and the certificates in `authorities`, in DER.
    ///
    /// # Errors
    /// If one of `authorities` is not a certificate.
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
        Ok(Self(Arc::new(Shared {
            runtime,
            lookups: Lookups::new(resolver),
            shares: PerPlugin::default(),
            tls: Arc::new(config).into(),
        })))
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// The share of a plugin's requests in the threads of the runtime.
    pub(super) fn fair_share(&self, plugin: &PluginName) -> Arc<FairShare> {
        self.0.shares.of(plugin, || FairShare::on(&self.0.runtime))
    }

    pub(super) fn lookups(&self) -> &Lookups {
        &self.0.lookups
    }

    /// Connects to one of these addresses. Under `https` the server must prove that it is the host.
    pub(super) async fn connect(
        &self,
        scheme: Scheme,
        host: &Host<String>,
        addresses: &[SocketAddr],
    ) -> Result<Box<dyn Stream>, Error> {
        let stream = reach(addresses).await?;
        // The guest waits for small writes.
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
        let connected = if index + 1 == addresses.len() {
            Ok(connecting.await)
        } else {
            timeout(CONNECT_TIMEOUT, connecting).await
        };
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
