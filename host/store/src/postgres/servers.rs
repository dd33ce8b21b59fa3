//! Connecting to one of several servers. Each has its own time, because one whose machine is lost, or that does not answer any more, must
//! not take the time of the one that took its place.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::{ConfigConnectImpl, Connect};
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Error, Socket};

use super::tls::{Stream, Tls};

/// Connects to the servers of a connection string.
#[derive(Clone)]
pub(super) struct Servers {
    tls: Tls,
    /// For all servers together.
    deadline: Duration,
    /// The number of the server that answered last. It is asked first.
    last: Arc<AtomicUsize>,
}

/// A connection that its owner keeps running.
pub(super) type Connection = tokio_postgres::Connection<Socket, Stream<Socket>>;

impl Servers {
    pub(super) fn new(tls: Tls, deadline: Duration) -> Self {
        Self { tls, deadline, last: Arc::default() }
    }

    /// A connection outside of a pool.
    pub(super) async fn connect(&self, config: &Config) -> Result<(Client, Connection), Error> {
        self.first(config, |server| {
            let tls = self.tls.clone();
            async move { server.connect(tls).await }
        })
        .await
    }

    /// The first server that can be used. Does not return if none answers: its caller has a deadline.
    async fn first<T, F: Future<Output = Result<T, Error>>>(
        &self,
        config: &Config,
        connect: impl Fn(Config) -> F,
    ) -> Result<T, Error> {
        let servers = each(config);
        let (count, last) = (servers.len(), self.last.load(Ordering::Relaxed));
        let time =
            if count == 1 { self.deadline } else { self.deadline / u32::try_from(count + 1).unwrap_or(u32::MAX) };
        let mut failed = None;
        for number in (0..count).map(|number| (last + number) % count) {
            match timeout(time, connect(servers[number].clone())).await {
                Ok(Ok(connected)) => {
                    self.last.store(number, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Err(error)) => failed = Some(error),
                Err(_) => {}
            }
        }
        match failed {
            Some(error) => Err(error),
            None => pending().await,
        }
    }
}

impl Connect for Servers {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let config = config.clone();
        Box::pin(async move {
            self.first(&config, |server| {
                let tls = self.tls.clone();
                async move { ConfigConnectImpl { tls }.connect(&server).await }
            })
            .await
        })
    }
}

/// The settings for each server alone.
fn each(config: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    if count < 2 {
        return vec![config.clone()];
    }
    let server = |number: usize| {
        let mut server = without_servers(config);
        match hosts.get(number) {
            Some(Host::Tcp(name)) => drop(server.host(name)),
            #[cfg(unix)]
            Some(Host::Unix(path)) => drop(server.host_path(path)),
            None => {}
        }
        if let Some(address) = addresses.get(number) {
            server.hostaddr(*address);
        }
        if let Some(port) = ports.get(number).or(ports.first()) {
            server.port(*port);
        }
        server
    };
    (0..count).map(server).collect()
}

fn without_servers(config: &Config) -> Config {
    let mut server = Config::new();
    if let Some(user) = config.get_user() {
        server.user(user);
    }
    if let Some(password) = config.get_password() {
        server.password(password);
    }
    if let Some(database) = config.get_dbname() {
        server.dbname(database);
    }
    if let Some(options) = config.get_options() {
        server.options(options);
    }
    if let Some(name) = config.get_application_name() {
        server.application_name(name);
    }
    if let Some(time) = config.get_connect_timeout() {
        server.connect_timeout(*time);
    }
    if let Some(time) = config.get_tcp_user_timeout() {
        server.tcp_user_timeout(*time);
    }
    if let Some(time) = config.get_keepalives_interval() {
        server.keepalives_interval(time);
    }
    if let Some(count) = config.get_keepalives_retries() {
        server.keepalives_retries(count);
    }
    server.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    server.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    server.channel_binding(config.get_channel_binding()).target_session_attrs(config.get_target_session_attrs());
    server
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_all_settings_but_those_of_the_others() {
        let of = |servers: &str| {
            let url = format!(
                "postgres://u:secret@{servers}/t?sslmode=require&connect_timeout=3&keepalives=0&keepalives_idle=4&\
                 keepalives_interval=5&keepalives_retries=6&tcp_user_timeout=7&options=-c%20jit%3Doff&application_name=a&\
                 target_session_attrs=read-write&channel_binding=disable&sslnegotiation=direct"
            );
            url.parse::<Config>().unwrap()
        };
        assert_eq!(each(&of("one:1,two:2")), [of("one:1"), of("two:2")]);
        assert_eq!(each(&of("one,two,%2Ffolder")), [of("one:5432"), of("two:5432"), of("%2Ffolder")]);
        assert_eq!(each(&of("one:7")), [of("one:7")]);
    }
}
