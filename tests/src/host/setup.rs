//! The components, configuration and files of a host to start.

use std::fs;
use std::sync::LazyLock;

use super::Host;
use crate::database;
use crate::guests;
use crate::http::{Address, Client};

/// On PostgreSQL, the database that is the template of the database of each host, and the principals whose tokens are in it.
static TEMPLATE: LazyLock<(String, [Client; 4])> = LazyLock::new(|| {
    let (name, url) = database::new();
    (name, Setup::default().prepare_on(Some(&url)).principals())
});

/// A host to start.
#[derive(Default)]
pub struct Setup {
    components: Vec<(String, Vec<u8>)>,
    settings: String,
    tables: String,
    around: Vec<String>,
    /// Files in its folder.
    files: Vec<(String, String)>,
    /// Those of another host that has the same tokens.
    principals: Option<[Client; 4]>,
}

impl Setup {
    /// With these example plugins.
    #[must_use]
    pub fn with(plugins: &[&str]) -> Self {
        plugins.iter().fold(Self::default(), |setup, name| setup.component(name, guests::plugin(name)))
    }

    /// With this component under this name.
    #[must_use]
    pub fn component(mut self, name: &str, bytes: Vec<u8>) -> Self {
        self.components.push((name.to_owned(), bytes));
        self
    }

    /// With more keys at the top of its configuration.
    #[must_use]
    pub fn settings(mut self, text: &str) -> Self {
        self.settings.push_str(text);
        self.settings.push('\n');
        self
    }

    /// With more tables in its configuration.
    #[must_use]
    pub fn tables(mut self, text: &str) -> Self {
        self.tables.push_str(text);
        self.tables.push('\n');
        self
    }

    /// With a file in its folder.
    #[must_use]
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// With the tokens of another host, which are in the store that both use.
    #[must_use]
    pub fn beside(mut self, other: &Host) -> Self {
        self.principals = Some(other.principals());
        self
    }

    /// Starts it as the child of another program, such as `strace` with its arguments.
    #[must_use]
    pub fn around(mut self, words: &[&str]) -> Self {
        self.around = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// With a compiler that cannot start: it sets its limit on data to 2 GiB, and nobody may raise a limit. Root may, unless it
    /// lost that capability.
    ///
    /// # Panics
    /// When it is unknown whether root runs the tests.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn without_compiler(self) -> Self {
        let owner = fs::metadata("/proc/self").expect("there is /proc");
        let is_root = std::os::unix::fs::MetadataExt::uid(&owner) == 0;
        let lost: &[_] = if is_root { &["setpriv", "--bounding-set", "-sys_resource"] } else { &[] };
        self.around(&[lost, &["prlimit", "--data=1500000000:1500000000"]].concat())
    }

    /// Starts it, with a token for each role.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(self) -> Host {
        let mut host = self.prepare();
        host.start();
        host
    }

    /// Makes its folders and tokens without starting it.
    ///
    /// # Panics
    /// When that fails.
    #[must_use]
    pub fn prepare(mut self) -> Host {
        if !database::is_chosen() {
            return self.prepare_on(None);
        }
        let (template, principals) = &*TEMPLATE;
        self.principals.get_or_insert_with(|| principals.clone());
        self.prepare_on(Some(&database::copy(template)))
    }

    /// As [`Setup::prepare`], on a database if there is one.
    fn prepare_on(self, database: Option<&str>) -> Host {
        let folder = tempfile::Builder::new().prefix("toolgate-test-").tempdir().expect("a temporary folder");
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins).expect("a folder of plugins");
        for (name, bytes) in &self.components {
            fs::write(plugins.join(format!("{name}.wasm")), bytes).expect("a component is written");
        }
        let store = database.map(|url| format!("store = \"{url}\"\n")).unwrap_or_default();
        let settings = store + &self.settings;
        let tables = &self.tables;
        // The host refuses this component without its grants.
        let has_rollout = self.components.iter().any(|(name, _)| name == "rollout");
        let rollout = has_rollout.then(|| guests::rollout_grants("rollout", "http://127.0.0.1:8080/", &[]));
        let config = format!(
            "plugins = \"plugins\"\ndata = \"data\"\npool = 64\n{settings}\n[plugin.ledger]\ncomponent = \"any\"\ngrants.keyvalue = true\n{}\n{tables}",
            rollout.unwrap_or_default()
        );
        fs::write(folder.path().join("toolgate.toml"), config).expect("a configuration is written");
        for (name, text) in &self.files {
            let file = folder.path().join(name);
            fs::write(&file, text).expect("a file is written");
            let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(&file, only_owner).expect("a file is closed to others");
        }
        let address = Address::default();
        let none = Client::new(&address, None);
        let mut host = Host {
            folder,
            around: self.around,
            child: None,
            address,
            agent: none.clone(),
            approver: none.clone(),
            page: none.clone(),
            admin: none,
        };
        if let Some([agent, approver, page, admin]) = self.principals {
            let at = |client: &Client| client.at(&host.address);
            (host.agent, host.approver, host.page, host.admin) = (at(&agent), at(&approver), at(&page), at(&admin));
            return host;
        }
        host.admin = host.token("root", &["admin"], None);
        host.agent = host.token("agent", &["caller"], None);
        host.approver = host.token("alice", &["approver"], None);
        host.page = host.token("page", &["client"], None);
        host
    }
}
