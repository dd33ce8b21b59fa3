//! The digest of everything that all hosts on one database must have equal in their configurations: all that decides what a call may do,
//! what happens to its turn, and when a host has ended. Addresses, folders, secrets and the sizes of a machine are its own. The accepted
//! tools of upstreams are not in it, because a host reads them again while it runs. Hosts compare them with their plugins.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::Digest;
use toml::Value;

use super::source::read_file;
use super::{Config, ConfigError};
use crate::shared_secret::SharedSecret;

/// The keys of a machine.
const OF_MACHINE: [&str; 11] = [
    "listen",
    "plugins",
    "data",
    "hosts",
    "server",
    "door",
    "compile",
    "pool",
    "guest_memory_bytes",
    "database_cache_bytes",
    "disk_reserve_bytes",
];

/// The key of `[store]` that all hosts must have equal: it says when a host has ended.
const LEASE: &str = "lease_seconds";

/// The keys that say where a secret is, in `[[webhook]]` and `[upstream]`.
const OF_SECRETS: [&str; 4] = ["secret_env", "secret_file", "token_env", "token_file"];

/// The same in the tables of single secrets: those of `[plugin.NAME.grants.secrets]` and `[upstream.NAME.env]`.
const IN_TABLES: [&str; 2] = ["env", "file"];

/// The largest file of a policy that is compared.
const MAX_FILE: u64 = 64 << 20;

impl Config {
    /// A digest of what all hosts on one database must have equal. Without the shared secret it tells nothing about the configuration,
    /// which may be confidential.
    ///
    /// # Errors
    /// [`ConfigError`]: the text is not a configuration.
    pub(crate) fn shared_digest(&self, secret: &SharedSecret) -> Result<Digest, ConfigError> {
        let (text, source) = (self.source.text(), &self.source);
        let mut table: toml::Table = text.parse().map_err(|error| ConfigError::at(source.path(), text, &error))?;
        table.retain(|key, _| !OF_MACHINE.contains(&key));
        if let Some(lease) = table.remove("store").and_then(|mut store| store.as_table_mut()?.remove(LEASE)) {
            table.insert(LEASE.to_owned(), lease);
        }
        table.iter_mut().for_each(|(key, value)| without_secrets(key, value));
        let files = self.policies.files.iter().chain(self.policies.component.iter().map(|table| &table.file));
        let files = files.map(|file| read_file(&source.beside().join(file), MAX_FILE).unwrap_or_default());
        let mut all = String::new();
        write(&Value::Table(table), &mut all);
        files.for_each(|content| all.push_str(&Digest::of(content).hex()));
        Ok(Digest::from_bytes(secret.derived(&format!("configuration {all}"))))
    }
}

/// Removes where secrets and files of a machine are. The contents of the files of policies are compared instead.
fn without_secrets(key: &str, value: &mut Value) {
    let each = |value: &mut Value, remove: &dyn Fn(&mut toml::Table)| match value {
        Value::Table(table) => table.iter_mut().filter_map(|(_, value)| value.as_table_mut()).for_each(remove),
        Value::Array(items) => items.iter_mut().filter_map(Value::as_table_mut).for_each(remove),
        _ => {}
    };
    match key {
        "webhook" | "upstream" => each(value, &|table| {
            table.retain(|key, _| !OF_SECRETS.contains(&key));
            let environment = table.get_mut("env");
            environment.into_iter().for_each(|all| each(all, &|one| one.retain(|key, _| !IN_TABLES.contains(&key))));
        }),
        "plugin" => each(value, &|table| {
            let secrets = table.get_mut("grants").and_then(|grants| grants.get_mut("secrets"));
            if let Some(secrets) = secrets {
                each(secrets, &|secret| secret.retain(|key, _| !IN_TABLES.contains(&key)));
            }
        }),
        "policies" => {
            if let Some(table) = value.as_table_mut() {
                table.get_mut("component").into_iter().for_each(|all| each(all, &|one| drop(one.remove("file"))));
            }
        }
        _ => {}
    }
}

/// Writes a value with sorted keys: their order means nothing.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Table(table) => {
            out.push('{');
            for (key, value) in table.iter().collect::<BTreeMap<_, _>>() {
                let _ = write!(out, "{key:?}:");
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            items.iter().for_each(|item| write(item, out));
            out.push(']');
        }
        leaf => {
            let _ = write!(out, "{leaf},");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn digest(text: &str, folder: &Path) -> Digest {
        let config = Config::parse(text, &folder.join("toolgate.toml")).unwrap();
        config.shared_digest(&SharedSecret::new(&[7; 32]).unwrap()).unwrap()
    }

    #[test]
    fn digest_ignores_order_machines_and_sources_of_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let rules = "[[policy]]\ntools = \"pay*\"\nrule = \"ask\"\n";
        let secret = "[plugin.p]\ncomponent = \"any\"\n[plugin.p.grants.secrets.key]\nhosts = [\"a.example\"]\nplaces = [\"header:authorization\"]\n";
        let hook = "[[webhook]]\nname = \"w\"\nurl = \"https://a.example/\"\n";
        let upstream = "[upstream.u]\ncommand = [\"run\"]\nenv.TOKEN";
        let on_database = "[store]\nlease_seconds = 20\nurl";
        let one = format!(
            "max_calls = 9\nephemeral = false\n{rules}{secret}env = \"A\"\n{hook}secret_env = \"A\"\n{upstream} = {{ env = \"A\" }}\n\
             {on_database} = \"postgres://a/t\"\nhost = \"a\"\nkey_file = \"a\"\npassword_env = \"A\"\n"
        );
        let machine = "listen = \"127.0.0.1:1\"\ndata = \"d\"\npool = 3\ndisk_reserve_bytes = 7\n";
        let other = format!(
            "{machine}ephemeral = false\nmax_calls = 9\n{on_database} = \"postgres://b/t\"\nconnections = 2\n{hook}secret_file = \"b\"\n\
             {rules}[server]\nconnections = 9\n{upstream} = {{ file = \"b\" }}\n{secret}file = \"b\"\n"
        );
        let same = digest(&one, folder.path());
        assert_eq!(same, digest(&other, folder.path()));
        for (from, to) in [
            ("max_calls = 9", "max_calls = 8"),
            ("\"ask\"", "\"deny\""),
            ("a.example\"]", "b.example\"]"),
            ("seconds = 20", "seconds = 30"),
            ("env.TOKEN", "env.OTHER"),
        ] {
            assert_ne!(same, digest(&one.replace(from, to), folder.path()), "{to}");
        }
        let without_lease = digest("max_calls = 9\n", folder.path());
        for on_database in ["store = \"postgres://a/t\"\n", "[store]\nurl = \"postgres://b/t\"\nhost = \"b\"\n"] {
            assert_eq!(without_lease, digest(&format!("max_calls = 9\n{on_database}"), folder.path()));
        }
        let config = Config::parse(&one, &folder.path().join("toolgate.toml")).unwrap();
        let elsewhere = config.shared_digest(&SharedSecret::new(&[8; 32]).unwrap()).unwrap();
        assert_ne!(same, elsewhere, "nobody without the secret can guess the configuration");
    }

    #[test]
    fn digest_has_the_contents_of_the_files_of_rules() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let digests = ["ask", "ask", "deny"].iter().zip(&folders).map(|(rule, folder)| {
            let text = format!(
                "[[policy]]\ntools = \"pay*\"\nrule = \"{rule}\"\nmatch = [{{ tool = \"pay\", arguments = {{}} }}]\n"
            );
            std::fs::write(folder.path().join("rules.toml"), text).unwrap();
            digest("policies.files = [\"rules.toml\"]\n", folder.path())
        });
        let digests: Vec<_> = digests.collect();
        assert_eq!(digests[0], digests[1]);
        assert_ne!(digests[1], digests[2]);
    }
}
