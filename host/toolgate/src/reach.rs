//! The addresses that webhooks can connect to. They are looked up and filtered like the addresses of guests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use capabilities::http::{Nat64, Reach, Resolver, may_reach};
use url::Host;
use webhook::Addresses;

/// The maximal number of addresses per name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Looks names up with the resolver of the operating system.
pub(crate) struct Lookups {
    resolver: Arc<dyn Resolver>,
    nat64: Nat64,
}

impl Lookups {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { nat64: Nat64::new(resolver.clone()), resolver }
    }
}

#[async_trait]
impl Addresses for Lookups {
    async fn of(&self, host: Host<String>, port: u16, private: bool) -> Result<Vec<SocketAddr>, String> {
        let found = match host {
            Host::Ipv4(address) => vec![IpAddr::V4(address)],
            Host::Ipv6(address) => vec![IpAddr::V6(address)],
            Host::Domain(name) => {
                let found = self.resolver.addresses(&name).await;
                found.map_err(|error| format!("the name {name} has no address: {error}"))?
            }
        };
        let allowed = allowed(&found, private)?;
        let untranslated = self.nat64.untranslated(allowed.clone()).await;
        match allowed.first() {
            Some(address) if untranslated.is_empty() => {
                Err(format!("{address} leads through a NAT64 translator, or the host cannot tell whether it does"))
            }
            _ => Ok(untranslated.into_iter().map(|address| SocketAddr::new(address, port)).collect()),
        }
    }
}

/// The addresses that a webhook can connect to, or an error if no address is allowed.
fn allowed(found: &[IpAddr], private: bool) -> Result<Vec<IpAddr>, String> {
    let reach = if private { Reach::Private } else { Reach::Public };
    let allowed = found.iter().filter(|address| may_reach(**address, reach)).take(MAX_ADDRESSES);
    let allowed: Vec<_> = allowed.copied().collect();
    match (found.first(), allowed.is_empty()) {
        (_, false) => Ok(allowed),
        (None, true) => Err("the name has no address".to_owned()),
        (Some(address), true) if private => Err(format!("requests to {address} are not allowed")),
        (Some(address), true) => {
            Err(format!("{address} is not a public address; `private = true` allows those of your own network"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;

    use url::Url;

    use super::*;

    /// Every name has these addresses, in a network without a translator.
    struct Fixed(&'static [&'static str]);

    impl Resolver for Fixed {
        fn addresses(&self, name: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
            let found: &[&str] = if name == "ipv4only.arpa" { &["192.0.0.170"] } else { self.0 };
            let found = found.iter().map(|text| text.parse().expect("an address")).collect();
            Box::pin(async move { Ok(found) })
        }
    }

    #[tokio::test]
    async fn webhooks_reach_private_addresses_only_if_allowed() {
        const MIXED: &[&str] = &["10.0.0.1", "1.1.1.1", "169.254.169.254", "2606:4700::1111"];
        for (url, of_the_name, public, private) in [
            (
                "https://hooks.test",
                MIXED,
                "1.1.1.1:443 [2606:4700::1111]:443",
                "10.0.0.1:443 1.1.1.1:443 [2606:4700::1111]:443",
            ),
            ("https://hooks.test:8443", &["10.0.0.1"], "refused", "10.0.0.1:8443"),
            ("https://hooks.test", &["169.254.169.254"], "refused", "refused"),
            ("https://hooks.test", &[], "refused", "refused"),
            // An address in the URL is not looked up, but it is filtered in every notation.
            ("https://127.0.0.1", &["1.1.1.1"], "refused", "127.0.0.1:443"),
            ("http://0x7f.1:81", &["1.1.1.1"], "refused", "127.0.0.1:81"),
            ("https://2130706433", &["1.1.1.1"], "refused", "127.0.0.1:443"),
            ("https://[::1]", &["1.1.1.1"], "refused", "[::1]:443"),
            ("https://[::ffff:127.0.0.1]", &["1.1.1.1"], "refused", "refused"),
            ("https://[::ffff:169.254.169.254]", &["1.1.1.1"], "refused", "refused"),
            ("https://localhost", &["127.0.0.1", "::1"], "refused", "127.0.0.1:443 [::1]:443"),
        ] {
            let parsed = Url::parse(url).expect(url);
            let (host, port) = (parsed.host().expect(url).to_owned(), parsed.port_or_known_default().expect(url));
            for (may_be_private, expected) in [(false, public), (true, private)] {
                let found = Lookups::new(Arc::new(Fixed(of_the_name))).of(host.clone(), port, may_be_private).await;
                let found = found.map(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
                assert_eq!(found.as_deref().unwrap_or("refused"), expected, "{url} private: {may_be_private}");
            }
        }
    }
}
