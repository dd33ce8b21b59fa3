//! The key `store`: the database of the turns.

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, de};

#[cfg(feature = "postgres")]
use super::secrets;
use super::source::Source;
use super::{Config, ConfigError};

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
    /// The number of connections for reads. There are four for the data of plugins and one for commits besides. Default: 8.
    #[serde(default)]
    pub connections: Option<NonZeroU32>,
}

impl StoreTable {
    /// The file with the authorities of the server's certificate, relative to the working folder of the host. It decides which
    /// server gets the password and keeps the turns.
    pub(super) fn authorities(&self) -> Option<&Path> {
        let (_, query) = self.url.split_once('?')?;
        query.split('&').filter_map(|parameter| parameter.strip_prefix("sslrootcert=")).next_back().map(Path::new)
    }
}

/// Without the connection string, which may contain the password.
impl fmt::Debug for StoreTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, password_env, password_file, connections } = self;
        f.debug_struct("StoreTable")
            .field("password_env", password_env)
            .field("password_file", password_file)
            .field("connections", connections)
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
            Ok(StoreTable { url: url.to_owned(), password_env: None, password_file: None, connections: None })
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
        Ok(Some(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("toolgate.toml"))
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
    fn store_that_no_host_can_use_is_refused() {
        for (text, expected) in [
            ("store = 'mysql://db/t'", "not a connection string of PostgreSQL"),
            ("store = 7", "a connection string such as"),
            ("[store]\nurl = 'postgres://db/t'\npasword_file = 'x'", "pasword_file"),
            ("[store]\nurl = 'postgres://db/t'\npassword_file = 'x'\npassword_env = 'X'", "has two sources"),
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
