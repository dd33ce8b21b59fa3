//! The key `store`: the database of the turns.

use std::fmt;
use std::num::NonZeroU32;
#[cfg(feature = "postgres")]
use std::path::Path;
use std::path::PathBuf;

#[cfg(feature = "postgres")]
use domain::{Digest, OwnerId};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, de};

#[cfg(feature = "postgres")]
use super::secrets;
use super::source::Source;
use super::{Config, ConfigError};
#[cfg(feature = "postgres")]
use crate::shared_secret::SharedSecret;

/// The maximum length of the name of a host.
const MAX_NAME: usize = 64;

/// The connection to a PostgreSQL server that keeps the turns.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreTable {
    /// The connection string, such as "postgres://toolgate@db.example/toolgate". TLS is used for other machines unless it has
    /// `sslmode=disable`. `sslrootcert` names a file with the authorities of the server's certificate.
    pub url: String,
    /// The environment variable with the password. Either this or `password_file`.
    #[serde(default)]
    pub password_env: Option<String>,
    /// The file with the password, relative to the configuration. A line break at its end is ignored.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// The number of connections for reads. A host has 12 others besides. Default: 8.
    #[serde(default)]
    pub connections: Option<NonZeroU32>,
    /// The name of this host among the hosts on the database: 1 to 64 letters, digits, `-`, `_` and `.`. Default: "toolgate".
    #[serde(default)]
    pub host: Option<String>,
    /// The file with the secret that all hosts on the database share, relative to the configuration: at least 32 random bytes. The
    /// keys for sessions, links, MCP clients and checkpoints come from it. Default: none, so that each data folder has keys of its
    /// own, and one host at a time can use the database.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// How long after the last sign of life of this host others recover its calls: 3 to 300. Default: 15.
    #[serde(default)]
    pub lease_seconds: Option<u32>,
}

impl StoreTable {
    fn of_url(url: &str) -> Self {
        let url = url.to_owned();
        Self {
            url,
            password_env: None,
            password_file: None,
            connections: None,
            host: None,
            key_file: None,
            lease_seconds: None,
        }
    }

    /// The name of this host.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.as_deref().unwrap_or("toolgate")
    }
}

/// Without the connection string, which may contain the password.
impl fmt::Debug for StoreTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, password_env, password_file, connections, host, key_file, lease_seconds } = self;
        f.debug_struct("StoreTable")
            .field("password_env", password_env)
            .field("password_file", password_file)
            .field("connections", connections)
            .field("host", host)
            .field("key_file", key_file)
            .field("lease_seconds", lease_seconds)
            .finish_non_exhaustive()
    }
}

/// Reads a connection string, or a table with one.
pub(super) fn string_or_table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StoreTable>, D::Error> {
    struct StringOrTable;

    impl<'de> de::Visitor<'de> for StringOrTable {
        type Value = StoreTable;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(
                "a connection string such as \"postgres://toolgate@db.example/toolgate\", or a table with `url`",
            )
        }

        fn visit_str<E: de::Error>(self, url: &str) -> Result<StoreTable, E> {
            Ok(StoreTable::of_url(url))
        }

        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<StoreTable, A::Error> {
            StoreTable::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(StringOrTable).map(Some)
}

/// The forms of the value in the file.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema describes it")]
pub(super) enum StoreForm {
    Url(String),
    Table(StoreTable),
}

pub(super) fn check(config: &Config, source: &Source) -> Result<(), ConfigError> {
    let Some(table) = &config.store else { return Ok(()) };
    let error = |message: &str, hint: &str| source.error(&["store"], message.to_owned(), Some(hint.to_owned()));
    if !cfg!(feature = "postgres") {
        return Err(error("this toolgate was built without PostgreSQL", "build it with the feature `postgres`"));
    }
    if !table.url.starts_with("postgres://") && !table.url.starts_with("postgresql://") {
        let hint =
            "write `store = \"postgres://user@server/database\"`; without the key, the turns are in the data folder";
        return Err(error("the store is not a connection string of PostgreSQL", hint));
    }
    if table.password_env.is_some() && table.password_file.is_some() {
        return Err(error("the password of the store has two sources", "keep `password_env` or `password_file`"));
    }
    if table.lease_seconds.is_some_and(|seconds| !(3..=300).contains(&seconds)) {
        let message = "the lease of a host is not 3 to 300 seconds".to_owned();
        let hint = "a short lease moves calls soon; a long one keeps them where they are through a short outage";
        return Err(source.error(&["store", "lease_seconds"], message, Some(hint.to_owned())));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(1..=MAX_NAME).contains(&table.host().len()) || !table.host().chars().all(is_plain) {
        let message = format!("the name of the host is not 1 to {MAX_NAME} letters, digits, `-`, `_` and `.`");
        return Err(source.error(&["store", "host"], message, Some("give each host a short name".to_owned())));
    }
    Ok(())
}

#[cfg(feature = "postgres")]
impl Config {
    /// The settings of the database of the turns, with the password. `None`: the turns are in the data folder.
    ///
    /// # Errors
    /// [`ConfigError`]: the password cannot be read. It shows no value.
    pub fn database(&self) -> Result<Option<::store::PostgresSettings>, ConfigError> {
        let Some(table) = &self.store else { return Ok(None) };
        let mut settings = ::store::PostgresSettings::new(&*table.url);
        if table.password_env.is_some() || table.password_file.is_some() {
            let read = secrets::read(table.password_env.as_deref(), table.password_file.as_ref(), self.source.beside());
            let read =
                read.map_err(|why| self.source.error(&["store"], format!("the password of the store: {why}"), None));
            settings.password = Some(read?);
        }
        if let Some(connections) = table.connections {
            settings.readers = usize::try_from(connections.get()).unwrap_or(usize::MAX);
        }
        if let Some(seconds) = table.lease_seconds {
            settings.lease = std::time::Duration::from_secs(seconds.into());
        }
        Ok(Some(settings))
    }

    /// The same for a host on a data folder, with what the other hosts must know about this run of it.
    pub(crate) fn database_of(
        &self,
        data: &Path,
        owner: OwnerId,
    ) -> Result<Option<::store::PostgresSettings>, ConfigError> {
        let (Some(settings), Some(table)) = (self.database()?, &self.store) else { return Ok(None) };
        let secret = match self.shared_secret()? {
            Some(secret) => secret,
            None => self.own_secret(data)?,
        };
        let scheme = if self.server.tls.is_some() { "https" } else { "http" };
        let host = ::store::HostIdentity {
            name: table.host().to_owned(),
            owner,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            address: self.listen.map(|listen| format!("{scheme}://{listen}")),
            config: self.shared_digest(&secret)?,
            key: Digest::from_bytes(secret.derived("hosts")),
        };
        let left = Some(data.join("database-left-at"));
        Ok(Some(::store::PostgresSettings { host, left, ..settings }))
    }

    /// The secret of a host that shares none: no other host has it, so it is alone on its database.
    fn own_secret(&self, data: &Path) -> Result<SharedSecret, ConfigError> {
        #[cfg(feature = "server")]
        let own = crate::keys::Keys::Folder(data.to_owned()).mcp();
        #[cfg(not(feature = "server"))]
        let own = Ok::<_, std::io::Error>(*Digest::of(data.as_os_str().as_encoded_bytes()).as_bytes());
        let secret = own.map_err(|error| error.to_string());
        let secret = secret.and_then(|own| SharedSecret::new(&own).ok_or_else(|| "the key is too short".to_owned()));
        secret.map_err(|why| self.source.error(&["store"], format!("the keys of the data folder: {why}"), None))
    }

    /// The secret that all hosts on the database share. `None`: the data folder has keys of its own.
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, or it is too short. It shows no value.
    pub(crate) fn shared_secret(&self) -> Result<Option<SharedSecret>, ConfigError> {
        let Some(file) = self.store.as_ref().and_then(|table| table.key_file.as_ref()) else { return Ok(None) };
        let read = secrets::bytes_of(&self.source.beside().join(file)).and_then(|bytes| {
            SharedSecret::new(&bytes).ok_or_else(|| format!("it has fewer than {} bytes", SharedSecret::MIN_BYTES))
        });
        read.map(Some).map_err(|why| {
            let hint = "make it once with `openssl rand -base64 48`, and give all hosts the same file";
            let message = format!("the shared secret of the store: {why}");
            self.source.error(&["store", "key_file"], message, Some(hint.to_owned()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, std::path::Path::new("toolgate.toml"))
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn store_is_a_string_or_a_table() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("password"), "hidden\n").unwrap();
        let short = parsed("store = 'postgres://u:secret@db/t'").unwrap();
        assert_eq!(short.database().unwrap().unwrap().url, "postgres://u:secret@db/t");
        assert!(!format!("{short:?}").contains("secret"));
        let text = "[store]\nurl = 'postgres://u@db/t'\npassword_file = 'password'\nconnections = 3";
        let long = Config::parse(text, &folder.path().join("toolgate.toml")).unwrap();
        let settings = long.database().unwrap().unwrap();
        assert_eq!((settings.password.as_deref(), settings.readers), (Some("hidden"), 3));
        assert!(!format!("{settings:?}").contains("hidden"));
        assert!(parsed("").unwrap().database().unwrap().is_none());
        let missing = parsed("[store]\nurl = 'postgres://u@db/t'\npassword_env = 'TOOLGATE_TEST_NONE'").unwrap();
        let refused = missing.database().unwrap_err().to_string();
        assert!(refused.contains("the environment variable TOOLGATE_TEST_NONE is not set"), "{refused}");
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn shared_secret_is_read_from_its_file_and_not_short() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[store]\nurl = 'postgres://u@db/t'\nhost = 'a-1.b_2'\nkey_file = 'key'";
        let config = Config::parse(text, &folder.path().join("toolgate.toml")).unwrap();
        assert_eq!(config.store.as_ref().unwrap().host(), "a-1.b_2");
        for (content, expected) in [
            (None, "cannot read the file"),
            (Some([7; 31].as_slice()), "toolgate.toml:4:1: the shared secret of the store: it has fewer than 32 bytes"),
        ] {
            content.into_iter().for_each(|content| std::fs::write(folder.path().join("key"), content).unwrap());
            let refused = config.shared_secret().unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        std::fs::write(folder.path().join("key"), [7; 32]).unwrap();
        let read = config.shared_secret().unwrap().unwrap();
        assert_eq!(read.derived("session-key"), SharedSecret::new(&[7; 32]).unwrap().derived("session-key"));
        assert!(parsed("store = 'postgres://db/t'").unwrap().shared_secret().unwrap().is_none());
        assert_eq!(parsed("store = 'postgres://db/t'").unwrap().store.unwrap().host(), "toolgate");
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn store_that_no_host_can_use_is_refused() {
        for (text, expected) in [
            ("store = 'mysql://db/t'", "not a connection string of PostgreSQL"),
            ("store = 7", "a connection string such as"),
            ("[store]\nurl = 'postgres://db/t'\npasword_file = 'x'", "pasword_file"),
            ("[store]\nurl = 'postgres://db/t'\npassword_file = 'x'\npassword_env = 'X'", "has two sources"),
            (
                "[store]\nurl = 'postgres://db/t'\nhost = 'a b'",
                "toolgate.toml:3:1: the name of the host is not 1 to 64",
            ),
            ("[store]\nurl = 'postgres://db/t'\nhost = ''", "the name of the host is not 1 to 64"),
        ] {
            let refused = parsed(text).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    #[cfg(not(feature = "postgres"))]
    fn store_needs_the_feature() {
        let refused = parsed("store = 'postgres://db/t'").unwrap_err().to_string();
        assert!(refused.contains("built without PostgreSQL"), "{refused}");
    }
}
