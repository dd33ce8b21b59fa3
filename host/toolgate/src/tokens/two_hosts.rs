//! The tokens of two hosts on one database.

use std::sync::Arc;

use domain::{Digest, PrincipalId, Timestamp, principal::Role};
use server::Authenticate as _;
use tempfile::TempDir;

use super::{DOCUMENT, TokenHolder, Tokens, digest};
use crate::shared_documents::tests::{InMemory, TIME};

const NOW: Timestamp = Timestamp::from_millis(1);

struct Host {
    folder: TempDir,
    tokens: Tokens,
}

impl Host {
    async fn on(database: &Arc<InMemory>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::shared(folder.path(), database.host()).await.unwrap();
        Self { folder, tokens }
    }

    async fn knows(&self, token: &str) -> bool {
        server::Authenticate::refresh(&self.tokens).await;
        assert_eq!(
            self.tokens.holder(Digest::from_bytes(digest(token))).is_some(),
            self.tokens.principal(token).is_some()
        );
        self.tokens.principal(token).is_some()
    }

    fn admin(&self) -> Option<String> {
        let text = std::fs::read_to_string(Tokens::admin_file(self.folder.path())).ok()?;
        Some(text.trim().to_owned())
    }
}

fn holder(name: &str) -> TokenHolder {
    let name = PrincipalId::new(name).unwrap();
    TokenHolder { name, roles: vec![Role::Caller], groups: Vec::new(), conversation: None, created_at: NOW }
}

#[tokio::test]
async fn token_of_one_host_is_valid_and_revoked_at_the_other() {
    let database = Arc::default();
    let (a, b) = (Host::on(&database).await, Host::on(&database).await);
    assert_eq!(a.tokens.now().await.unwrap(), TIME, "not that of the machine");
    for name in ["one", "two"] {
        let token = a.tokens.create(holder(name)).await.unwrap();
        assert!(b.knows(&token).await && a.knows(&token).await);
        b.tokens.revoke(&PrincipalId::new(name).unwrap()).await.unwrap();
        assert!(!a.knows(&token).await && !b.knows(&token).await);
    }
    assert!(!a.folder.path().join("tokens.json").exists(), "no token is in the data folder");
}

#[tokio::test]
async fn simultaneous_changes_of_two_hosts_are_both_kept() {
    let database = Arc::new(InMemory::default());
    let (a, b) = (Host::on(&database).await, Host::on(&database).await);
    let first = a.tokens.create(holder("first")).await.unwrap();
    let before = database.content(DOCUMENT).unwrap();
    let second = a.tokens.create(holder("second")).await.unwrap();
    let after = database.content(DOCUMENT).unwrap();
    *database.meanwhile.lock().unwrap() = vec![after, before];
    let third = b.tokens.create(holder("third")).await.unwrap();
    for token in [first, second, third] {
        assert!(a.knows(&token).await);
    }
}

#[tokio::test]
async fn first_admin_is_made_once_for_all_hosts() {
    let database = Arc::new(InMemory::default());
    let (a, b) = (Host::on(&database).await, Host::on(&database).await);
    assert!(a.tokens.first_start(NOW).await.unwrap());
    assert!(b.knows(&a.admin().unwrap()).await);
    assert!(!b.tokens.first_start(NOW).await.unwrap() && !a.tokens.first_start(NOW).await.unwrap());
    assert_eq!(b.admin(), None);
    a.tokens.revoke(&PrincipalId::new("admin").unwrap()).await.unwrap();
    for host in [&b, &a] {
        assert!(!host.tokens.first_start(NOW).await.unwrap(), "hosts whose admin was revoked are not new");
    }
    assert!(a.admin().is_some() && b.admin().is_none(), "their files stay as they are");

    // Another host makes it between the look of this one and its own.
    let made = database.content(DOCUMENT).unwrap();
    let database = Arc::new(InMemory::default());
    let late = Host::on(&database).await;
    database.meanwhile.lock().unwrap().push(made);
    assert!(!late.tokens.first_start(NOW).await.unwrap());
    assert_eq!(late.admin(), None, "it leaves no token that is not valid");
}

#[tokio::test]
async fn tokens_of_a_data_folder_are_taken_over_once() {
    let (database, folder) = (Arc::new(InMemory::default()), tempfile::tempdir().unwrap());
    let own = Tokens::open(folder.path()).unwrap();
    let token = own.create(holder("one")).await.unwrap();
    let shared = Tokens::shared(folder.path(), database.host()).await.unwrap();
    assert!(shared.principal(&token).is_some());
    shared.revoke(&PrincipalId::new("one").unwrap()).await.unwrap();
    let again = Tokens::shared(folder.path(), database.host()).await.unwrap();
    assert!(again.principal(&token).is_none(), "a revoked token does not come back");
    // Nobody takes the file of the folder for the tokens any more.
    let refused = Tokens::open(folder.path()).err().unwrap().to_string();
    assert!(refused.contains("are in the database of the hosts"), "{refused}");
    let empty = Arc::new(InMemory::default());
    let elsewhere = Tokens::shared(folder.path(), empty.host()).await.unwrap();
    assert!(elsewhere.principal(&token).is_none() && empty.content(DOCUMENT).is_none());
}

#[tokio::test]
async fn database_that_does_not_answer_refuses_every_token() {
    let database = Arc::new(InMemory::default());
    let host = Host::on(&database).await;
    let token = host.tokens.create(holder("one")).await.unwrap();
    let host = Host { tokens: Tokens::shared(host.folder.path(), database.host()).await.unwrap(), ..host };
    *database.is_down.lock().unwrap() = true;
    crate::shared_documents::tests::window().await;
    assert!(!host.knows(&token).await && !host.tokens.is_readable());
    *database.is_down.lock().unwrap() = false;
    assert!(host.knows(&token).await && host.tokens.is_readable());
}
