//! Connecting to the server: the connection string, the checks of the server, and the lock of the host.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime};
use percent_encoding::percent_decode_str;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Config, Row};

use super::error::PostgresError;
use super::fault::reason;
use super::fence::{Fence, Known, OwnRow};
use super::hosts::{self, Me};
use super::lock::Lock;
use super::migrate::{SCHEMA, found, make_or_check, migrate};
use super::servers::Servers;
use super::session::Session;
use super::settings::PostgresSettings;
use super::tls::Tls;

/// The oldest server whose promises are tested. It has `gen_random_uuid`, which 12 does not have, and its maintainers still repaired it
/// when this format was made.
const OLDEST: i32 = 140_000;

/// With these, the host sees in about ten seconds that the machine of the server, or the network to it, is lost.
const KEEPALIVES: &str = "keepalives_idle=5&keepalives_interval=2&keepalives_retries=3";

/// The attempts to take the lock of the host's name, in the time for it.
const ATTEMPTS: u32 = 4;

/// Makes connections to one database.
pub(super) struct Connector {
    server: String,
    config: Config,
    servers: Servers,
    deadline: Duration,
    lock_wait: Duration,
    pub(super) me: Me,
    writer: Pool,
    /// The statements of the writer.
    statements: Vec<&'static str>,
}

impl Connector {
    pub(super) fn new(settings: &PostgresSettings, statements: Vec<&'static str>) -> Result<Self, PostgresError> {
        let PostgresSettings { url, password, deadline, lock_wait, .. } = settings;
        let (deadline, lock_wait) = (*deadline, *lock_wait);
        let (mut config, authorities) = parsed(url)?;
        if let Some(password) = password {
            config.password(password);
        }
        let tls = Tls::new(authorities.as_deref()).map_err(PostgresError::Url)?;
        // Also reads: a standby may lack commits that were acknowledged. After a failover, no new connection goes to the old server.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.connect_timeout(config.get_connect_timeout().copied().unwrap_or(deadline));
        config.tcp_user_timeout(config.get_tcp_user_timeout().copied().unwrap_or(deadline));
        if config.get_application_name().is_none() {
            config.application_name("toolgate");
        }
        let writes = of_writer(deadline);
        let servers = Servers::new(tls, deadline);
        let writer = pool(&config, &servers, &writes, 1, deadline)?;
        Ok(Self {
            server: server(&config),
            config,
            servers,
            deadline,
            lock_wait,
            me: Me::new(settings),
            writer,
            statements,
        })
    }

    /// Connections with these settings of the session.
    fn pool(&self, options: &str, size: usize) -> Result<Pool, PostgresError> {
        pool(&self.config, &self.servers, options, size, self.deadline)
    }

    /// Connections for reads, and for writes outside of commits.
    pub(super) fn requests(&self, size: usize) -> Result<Pool, PostgresError> {
        let timeout = self.deadline.as_millis();
        self.pool(&format!("-c statement_timeout={timeout}"), size)
    }

    /// For the one connection of the hints.
    pub(super) fn hints(&self) -> (Config, Servers) {
        (self.config.clone(), self.servers.clone())
    }

    /// Checks the server and the tables. Makes the tables unless they exist.
    pub(super) async fn check(&self) -> Result<(), PostgresError> {
        let session = self.session().await?;
        let checked = async {
            check_server(&session).await?;
            make_or_check(&session, self.lock_wait, self.me.lease).await
        };
        let checked = checked.await;
        session.close();
        checked
    }

    /// A connection for one long transaction of a command.
    pub(super) async fn long_session(&self) -> Result<Session, PostgresError> {
        let pool = self.pool("-c idle_in_transaction_session_timeout=0 -c statement_timeout=0", 1)?;
        pool.get().await.map(Session::new).map_err(|error| self.unreachable(error))
    }

    async fn session(&self) -> Result<Session, PostgresError> {
        // An attempt that was given up leaves its connection in the pool, and it may never answer.
        self.writer.retain(|_, _| false);
        self.writer.get().await.map(Session::new).map_err(|error| self.unreachable(error))
    }

    /// Connections for the plugins' data. A value is on disk with the next commit at the latest, because the server writes one log
    /// in order. The server gives a statement up before the host does, so that it blocks no later one.
    pub(super) fn values(&self, size: usize) -> Result<Pool, PostgresError> {
        let timeout = (self.deadline / 2).as_millis().max(1);
        self.pool(&format!("-c synchronous_commit=off -c statement_timeout={timeout}"), size)
    }

    /// The one connection that writes commits. It has the lock of the host's name, the server has been checked, and the database is
    /// as the host knows it. Returns the row of the host too.
    pub(super) async fn writer(
        &self,
        lock_wait: Duration,
        known: Option<Known>,
        fence: &Fence,
    ) -> Result<(Session, OwnRow), PostgresError> {
        let session = self.session().await?;
        let prepared = async {
            self.prepare(&session, lock_wait).await?;
            hosts::take_over(&session, &self.me, known, fence).await
        };
        let prepared = prepared.await;
        match prepared {
            Ok(own) => Ok((session, own)),
            Err(error) => {
                session.close();
                Err(error)
            }
        }
    }

    /// Checks the server, takes the lock of the host's name, and makes the tables.
    async fn prepare(&self, session: &Session, lock_wait: Duration) -> Result<(), PostgresError> {
        check_server(session).await?;
        let (name, lock) = (self.me.name(), Lock::of_host(self.me.name()));
        let mut holder = lock.take(session, lock_wait / ATTEMPTS).await?;
        for _ in 1..ATTEMPTS {
            if holder.is_some() {
                if found(session).await?.has_hosts() {
                    lock.end_left_behind(session, name, self.me.owner()).await?;
                }
                holder = lock.take(session, lock_wait / ATTEMPTS).await?;
            }
        }
        if let Some(by) = holder {
            return Err(PostgresError::InUse { name: name.to_owned(), by });
        }
        migrate(session, lock_wait, self.me.lease, Some(name)).await?;
        let prepared = session.prepare(self.statements.iter().copied()).await;
        prepared.map_err(PostgresError::refused("prepare statements"))
    }

    fn unreachable(&self, error: PoolError) -> PostgresError {
        let reason = match error {
            PoolError::Backend(error) => reason(&error),
            error => error.to_string(),
        };
        // The words of the client library, which has no code for it.
        if reason.ends_with("database does not allow writes") {
            return PostgresError::ReadOnly;
        }
        PostgresError::Unreachable { server: self.server.clone(), reason }
    }
}

/// The settings of the session of the writer. The host may stop, or lose its network, at any time. The server then frees the locks
/// of the session soon, because the other hosts, or the next one with this name, wait for them.
fn of_writer(deadline: Duration) -> String {
    // A server that waits for an acknowledgement this long, after a probe too, ends the session.
    let (idle, probes) = (deadline / 4, 4);
    // Each statement looks for keys, so one plan is right for all arrays. By itself the server would plan again each time, because it
    // takes arrays of unknown length for long ones, and that costs as much as the rest. It can make the plan while a table is empty:
    // with `enable_seqscan`, it would then read the whole table each time, with all removed rows, until the next automatic vacuum.
    format!(
        "-c idle_in_transaction_session_timeout={} -c tcp_user_timeout={} -c tcp_keepalives_idle={} \
         -c tcp_keepalives_interval=1 -c tcp_keepalives_count={probes} -c enable_seqscan=off -c jit=off \
         -c plan_cache_mode=force_generic_plan",
        idle.as_millis().max(1),
        (idle.as_secs().max(1) + probes) * 1_000,
        idle.as_secs().max(1),
    )
}

fn pool(
    config: &Config,
    servers: &Servers,
    options: &str,
    size: usize,
    deadline: Duration,
) -> Result<Pool, PostgresError> {
    let mut config = config.clone();
    let of_operator = config.get_options().unwrap_or_default().to_owned();
    config.options(format!(
        "{of_operator} -c search_path={SCHEMA} -c default_transaction_isolation=read\\ committed {options}"
    ));
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(config, servers.clone(), recycling);
    let pool = Pool::builder(manager).max_size(size).runtime(Runtime::Tokio1);
    let pool = pool.wait_timeout(Some(deadline)).create_timeout(Some(deadline)).build();
    pool.map_err(|error| PostgresError::Url(error.to_string()))
}

/// Reads a connection string, and the file of authorities that it names.
fn parsed(url: &str) -> Result<(Config, Option<PathBuf>), PostgresError> {
    let invalid = |reason: &str| PostgresError::Url(reason.to_owned());
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(invalid("it begins with `postgres://`"));
    }
    let (before, query) = url.split_once('?').unwrap_or((url, ""));
    // A later parameter replaces an earlier one.
    let (mut has_mode, mut parameters) = (false, vec![KEEPALIVES]);
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("sslrootcert", _)) => {}
            // Certificates are verified in each mode with TLS.
            Some(("sslmode", mode)) => {
                has_mode = true;
                parameters.push(match mode {
                    "disable" => "sslmode=disable",
                    "require" | "verify-ca" | "verify-full" => "sslmode=require",
                    _ => return Err(invalid("`sslmode` is `disable`, `require` or `verify-full`")),
                });
            }
            _ => parameters.push(parameter),
        }
    }
    let mut config = Config::from_str(&format!("{before}?{}", parameters.join("&"))).map_err(|error| {
        let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        PostgresError::Url(reason)
    })?;
    let is_tcp =
        config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_))) || !config.get_hostaddrs().is_empty();
    if !has_mode {
        config.ssl_mode(if is_tcp { SslMode::Require } else { SslMode::Disable });
    }
    Ok((config, authorities(url)))
}

/// The file with the authorities of the server's certificate, in a connection string.
#[must_use]
pub fn authorities(url: &str) -> Option<PathBuf> {
    let (_, query) = url.split_once('?')?;
    let path = query.split('&').filter_map(|parameter| parameter.strip_prefix("sslrootcert=")).next_back()?;
    Some(percent_decode_str(path).decode_utf8_lossy().into_owned().into())
}

/// The server in words, without the password.
fn server(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    hosts.collect::<Vec<_>>().join(", ")
}

async fn check_server(session: &Session) -> Result<(), PostgresError> {
    let settings = session.query(SETTINGS, &[]).await.map_err(PostgresError::refused("tell its settings"))?;
    check(&Settings::read(settings.first().ok_or(PostgresError::ReadOnly)?)?)
}

const SETTINGS: &str = "SELECT current_setting('server_version_num')::int AS number, \
    current_setting('server_version') AS version, current_setting('server_encoding') AS encoding, \
    current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit, \
    current_setting('full_page_writes') AS full_page_writes, current_setting('search_path') AS search_path, \
    pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS is_read_only";

struct Settings {
    number: i32,
    version: String,
    encoding: String,
    fsync: String,
    synchronous_commit: String,
    full_page_writes: String,
    search_path: String,
    is_read_only: bool,
}

impl Settings {
    fn read(row: &Row) -> Result<Self, PostgresError> {
        let unreadable = |error: tokio_postgres::Error| PostgresError::Refused {
            attempted: "tell its settings",
            reason: error.to_string(),
        };
        let text = |name: &str| row.try_get::<_, String>(name).map_err(unreadable);
        Ok(Self {
            number: row.try_get("number").map_err(unreadable)?,
            version: text("version")?,
            encoding: text("encoding")?,
            fsync: text("fsync")?,
            synchronous_commit: text("synchronous_commit")?,
            full_page_writes: text("full_page_writes")?,
            search_path: text("search_path")?,
            is_read_only: row.try_get("is_read_only").map_err(unreadable)?,
        })
    }
}

/// Refuses settings with which the server confirms commits that are not on its disk.
pub(super) fn check_disk(fsync: &str, synchronous_commit: &str) -> Result<(), PostgresError> {
    let settings = [("fsync", fsync), ("synchronous_commit", synchronous_commit)];
    match settings.into_iter().find(|(_, value)| *value == "off") {
        Some((setting, _)) => Err(PostgresError::Unsafe { setting }),
        None => Ok(()),
    }
}

fn check(settings: &Settings) -> Result<(), PostgresError> {
    if settings.number < OLDEST {
        return Err(PostgresError::TooOld(settings.version.clone()));
    }
    // It comes with the timeouts of the session.
    if settings.search_path != SCHEMA {
        return Err(PostgresError::Options);
    }
    if settings.is_read_only {
        return Err(PostgresError::ReadOnly);
    }
    check_disk(&settings.fsync, &settings.synchronous_commit)?;
    if settings.encoding != "UTF8" {
        return Err(PostgresError::Encoding(settings.encoding.clone()));
    }
    if settings.full_page_writes == "off" {
        tracing::warn!(
            "the database server has `full_page_writes = off`: a loss of power can damage it, unless its storage writes whole \
             pages, as ZFS does"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        parsed(url).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn tls_is_used_unless_the_operator_turns_it_off() {
        let mode = |url: &str| parsed(url).unwrap().0.get_ssl_mode();
        assert_eq!(mode("postgres://u@db.example/t"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example/t?sslmode=verify-full"), SslMode::Require);
        assert_eq!(mode("postgres://u@localhost/t?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@%2Frun%2Fpostgresql/t"), SslMode::Disable);
        assert_eq!(mode("postgresql:///t?host=/run/postgresql"), SslMode::Disable);
        let refused = refused("postgres://u@db/t?sslmode=prefer");
        assert!(refused.ends_with("`sslmode` is `disable`, `require` or `verify-full`"), "{refused}");
    }

    #[test]
    fn no_error_has_the_password() {
        for url in ["postgres://u:hidden@db:port/t", "postgres://u:hidden@db/t?no=1", "mysql://u:hidden@db/t"] {
            assert!(!refused(url).contains("hidden"), "{}", refused(url));
        }
        let (config, _) = parsed("postgres://u:hidden@db.example,other/t").unwrap();
        assert_eq!(server(&config), "db.example, other");
        assert!(!format!("{config:?}").contains("hidden"));
    }

    #[test]
    fn file_of_authorities_is_not_for_the_server() {
        let (_, authorities) = parsed("postgres://u@db/t?sslrootcert=/etc/ca.pem&connect_timeout=3").unwrap();
        assert_eq!(authorities, Some(PathBuf::from("/etc/ca.pem")));
        let (_, encoded) = parsed("postgres://u@db/t?sslrootcert=%2Fetc%2Four%20own%26ca.pem").unwrap();
        assert_eq!(encoded, Some(PathBuf::from("/etc/our own&ca.pem")));
        let missing = Tls::new(Some(std::path::Path::new("/missing.pem"))).map(|_| ()).unwrap_err();
        assert!(missing.starts_with("sslrootcert /missing.pem: "), "{missing}");
    }

    #[test]
    fn operator_says_how_soon_a_loss_is_noticed() {
        let keepalives = |url: &str| {
            let (config, _) = parsed(url).unwrap();
            let seconds = [Some(config.get_keepalives_idle()), config.get_keepalives_interval()];
            (config.get_keepalives(), seconds.map(|time| time.unwrap().as_secs()), config.get_keepalives_retries())
        };
        assert_eq!(keepalives("postgres://u@db/t"), (true, [5, 2], Some(3)));
        let of_operator = "postgres://u@db/t?keepalives=0&keepalives_idle=7200&keepalives_interval=9";
        assert_eq!(keepalives(of_operator), (false, [7_200, 9], Some(3)));
    }

    #[test]
    fn server_that_cannot_keep_commits_is_refused() {
        let good = || Settings {
            number: 150_018,
            version: "15.18".into(),
            encoding: "UTF8".into(),
            fsync: "on".into(),
            synchronous_commit: "remote_apply".into(),
            full_page_writes: "off".into(),
            search_path: SCHEMA.into(),
            is_read_only: false,
        };
        assert!(check(&good()).is_ok());
        let old = Settings { number: 130_022, version: "13.22".into(), ..good() };
        assert!(matches!(check(&old), Err(PostgresError::TooOld(version)) if version == "13.22"));
        for (settings, setting) in [
            (Settings { fsync: "off".into(), ..good() }, "fsync"),
            (Settings { synchronous_commit: "off".into(), ..good() }, "synchronous_commit"),
        ] {
            assert!(matches!(check(&settings), Err(PostgresError::Unsafe { setting: found }) if found == setting));
        }
        let standby = Settings { is_read_only: true, ..good() };
        assert!(matches!(check(&standby), Err(PostgresError::ReadOnly)));
        let pool = Settings { search_path: "\"$user\", public".into(), ..good() };
        assert!(matches!(check(&pool), Err(PostgresError::Options)));
        let latin = Settings { encoding: "LATIN1".into(), ..good() };
        assert!(matches!(check(&latin), Err(PostgresError::Encoding(_))));
    }
}
