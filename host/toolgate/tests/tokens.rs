//! Tokens. They are stored as digests, and the file is read again when it changes.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::future::poll_fn;
use std::path::Path;
use std::task::Poll;

use dispatch::ports::Principals;
use domain::{ConversationId, PrincipalId, Timestamp, principal::Role};
use server::Authenticate;
use toolgate::tokens::{TokenError, TokenHolder, Tokens};

fn holder(name: &str, roles: &[Role]) -> TokenHolder {
    let name = PrincipalId::new(name).expect("a name");
    TokenHolder {
        name,
        roles: roles.to_vec(),
        groups: Vec::new(),
        conversation: None,
        created_at: Timestamp::from_millis(7),
    }
}

#[cfg(unix)]
/// On a thread of a test.
fn block_on<T>(done: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(done)
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[tokio::test]
async fn token_is_known_only_to_its_holder() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = Tokens::open(folder.path()).expect("tokens");
    let groups = vec!["finance".parse().expect("a group"), "night-shift".parse().expect("a group")];
    let bound = TokenHolder { groups, conversation: ConversationId::new("c").ok(), ..holder("page", &[Role::Client]) };
    let token = tokens.create(bound.clone()).await.expect("a token");
    assert!(token.starts_with("tg_") && token.len() == 46, "{token}");
    let file = std::fs::read_to_string(folder.path().join("tokens.json")).expect("a file");
    assert!(!file.contains(&token[3..]), "the token itself is stored");

    let principal = tokens.principal(&token).expect("a principal");
    assert_eq!(
        (principal.id.clone(), principal.conversation.clone()),
        (bound.name.clone(), bound.conversation.clone())
    );
    assert_eq!(principal.groups, bound.groups);
    assert_eq!(principal.since, Some(bound.created_at));
    let digest = domain::Digest::of(&token);
    assert_eq!(tokens.holder(digest), Some(principal.clone()), "a session finds it by its digest");
    assert_eq!(tokens.named(&bound.name), Some((principal.clone(), digest)));
    assert_eq!(tokens.named(&PrincipalId::new("pag").expect("a name")), None);
    assert!(principal.roles.has(Role::Client) && !principal.roles.has(Role::Caller));
    for wrong in ["", "tg_", &token[..45], &format!("{token}x"), &token.to_lowercase()] {
        assert_eq!(tokens.principal(wrong), None, "{wrong}");
    }
    assert_eq!(tokens.list().await.expect("a list"), [bound]);
}

#[tokio::test]
async fn mcp_clients_have_a_token_of_the_role_caller() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = Tokens::open(folder.path()).expect("tokens");
    let now = Timestamp::from_millis(7);
    tokens.first_start(now).await.expect("an admin token");
    let token = tokens.of_mcp_clients(now).await.expect("a token");
    let principal = tokens.principal(&token).expect("a principal");
    assert_eq!(principal.id.as_str(), "mcp");
    assert_eq!(principal.roles.iter().collect::<Vec<_>>(), [Role::Caller]);
    assert_eq!(tokens.of_mcp_clients(now).await.expect("the same token"), token);
    #[cfg(unix)]
    assert_eq!(mode(&folder.path().join("mcp-token")), 0o600);

    tokens.revoke(&principal.id).await.expect("revokes");
    assert!(matches!(tokens.of_mcp_clients(now).await, Err(TokenError::Revoked(_))), "it stays revoked");
    std::fs::remove_file(folder.path().join("mcp-token")).expect("removes");
    let next = tokens.of_mcp_clients(now).await.expect("the operator wants one again");
    assert_ne!(next, token);
}

#[tokio::test]
async fn processes_that_start_at_once_share_the_token_of_mcp_clients() {
    let folder = tempfile::tempdir().expect("a folder");
    let begin = std::sync::Barrier::new(8);
    let made = || {
        let tokens = Tokens::open(folder.path()).expect("tokens");
        begin.wait();
        block_on(tokens.of_mcp_clients(Timestamp::from_millis(7))).expect("a token")
    };
    let all: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(made)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(all.len(), 1);
    let holders = Tokens::open(folder.path()).expect("tokens").list().await.expect("a list");
    assert_eq!(holders.len(), 1, "the others are revoked: {holders:?}");
}

#[tokio::test]
async fn name_of_another_token_is_not_taken_for_mcp_clients() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = Tokens::open(folder.path()).expect("tokens");
    tokens.create(holder("mcp", &[Role::Approver])).await.expect("a token");
    let token = tokens.of_mcp_clients(Timestamp::from_millis(7)).await.expect("a token");
    assert_eq!(tokens.principal(&token).expect("a principal").id.as_str(), "mcp-2");
}

#[tokio::test]
async fn another_program_makes_and_revokes_tokens_of_a_running_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = Tokens::open(folder.path()).expect("tokens");
    let program = Tokens::open(folder.path()).expect("tokens");
    let one = program.create(holder("one", &[Role::Caller])).await.expect("a token");
    let two = program.create(holder("two", &[Role::Caller])).await.expect("a token");
    Authenticate::refresh(&running).await;
    assert!(running.principal(&one).is_some() && running.principal(&two).is_some());
    let name = PrincipalId::new("one").expect("a name");
    program.revoke(&name).await.expect("revoked");
    Principals::refresh(&running).await;
    assert!(running.principal(&one).is_none() && running.principal(&two).is_some());
    assert!(!running.is_current(&name, Timestamp::from_millis(7)));
    let file = folder.path().join("tokens.json");
    let valid = std::fs::read(&file).expect("a file");
    // A host that has not looked a moment ago.
    let running = Tokens::open(folder.path()).expect("tokens");
    std::fs::write(&file, "{}").expect("a file");
    Authenticate::refresh(&running).await;
    assert!(running.principal(&two).is_none(), "an invalid file allows nobody");
    std::fs::write(&file, valid).expect("a file");
    Authenticate::refresh(&running).await;
    assert!(running.principal(&two).is_some());
}

/// A named pipe simulates a disk that does not answer.
#[cfg(unix)]
#[tokio::test]
async fn file_that_hangs_holds_no_thread_of_its_callers() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = Tokens::open(folder.path()).expect("tokens");
    let one = tokens.create(holder("one", &[Role::Caller])).await.expect("a token");
    let file = folder.path().join("tokens.json");
    let valid = std::fs::read(&file).expect("a file");
    std::fs::remove_file(&file).expect("removed");
    assert!(std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo").success());
    let mut refreshed = Authenticate::refresh(&tokens);
    let polled = poll_fn(|cx| Poll::Ready(refreshed.as_mut().poll(cx))).await;
    assert!(polled.is_pending());
    assert!(tokens.principal(&one).is_some(), "what was read before is known");
    let writing = std::thread::spawn(move || std::fs::write(file, valid).expect("written"));
    refreshed.await;
    writing.join().expect("written");
    assert!(tokens.principal(&one).is_some());
}

#[tokio::test]
async fn file_of_a_newer_version_is_refused_and_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = Tokens::open(folder.path()).expect("tokens");
    let one = running.create(holder("one", &[Role::Caller])).await.expect("a token");
    let file = folder.path().join("tokens.json");
    let newer = r#"{"version":2,"tokens":{"one":{"scopes":["all"]}},"more":true}"#;
    std::fs::write(&file, newer).expect("a file");
    let two = || holder("two", &[Role::Admin]);
    let name = PrincipalId::new("one").expect("a name");
    let now = Timestamp::from_millis(8);
    for refused in [
        Tokens::open(folder.path()).map(drop),
        running.list().await.map(drop),
        running.create(two()).await.map(drop),
        running.revoke(&name).await,
        running.make_admin(now).await,
        running.first_start(now).await.map(drop),
    ] {
        let refused = refused.expect_err("a newer toolgate wrote the file");
        assert!(matches!(refused, TokenError::Newer { found: 2, known: 1, .. }), "{refused}");
        assert!(
            refused
                .to_string()
                .ends_with("tokens.json has the version 2, and this toolgate knows 1; start a newer toolgate")
        );
    }
    Authenticate::refresh(&running).await;
    assert!(running.principal(&one).is_none(), "it allows nobody");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), newer);
    assert!(!Tokens::admin_file(folder.path()).exists());

    for (text, reason) in
        [(r#"{"version":0,"tokens":[]}"#, "no toolgate writes the version 0"), ("{}", "missing field `version`")]
    {
        std::fs::write(&file, text).expect("a file");
        let refused = Tokens::open(folder.path()).expect_err("nothing wrote this");
        assert!(matches!(refused, TokenError::Unreadable { .. }), "{refused}");
        assert!(
            refused.to_string().contains(reason) && refused.to_string().ends_with("restore the file from a backup")
        );
    }
}

#[tokio::test]
async fn token_names_are_unique_and_unknown_ones_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = Tokens::open(folder.path()).expect("tokens");
    tokens.create(holder("one", &[Role::Caller])).await.expect("a token");
    assert!(matches!(tokens.create(holder("one", &[Role::Admin])).await, Err(TokenError::NameTaken(_))));
    assert!(matches!(tokens.create(holder("system", &[Role::Admin])).await, Err(TokenError::NameReserved(_))));
    assert!(matches!(tokens.revoke(&PrincipalId::new("two").expect("a name")).await, Err(TokenError::Unknown(_))));
}

/// An older toolgate could make such a token.
#[tokio::test]
async fn no_token_has_the_name_of_a_subject() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = Tokens::open(folder.path()).expect("tokens");
    let refused = tokens.create(holder("oauth:issuer:ann", &[Role::Admin])).await;
    assert!(matches!(refused, Err(TokenError::NameReserved(_))));
    let token = tokens.create(holder("oauth.issuer.ann", &[Role::Admin])).await.expect("a token");
    let file = folder.path().join("tokens.json");
    let older = std::fs::read_to_string(&file).expect("a file").replace("oauth.issuer.ann", "oauth:issuer:ann");
    let with = Tokens::open(folder.path()).expect("tokens");
    assert!(with.principal(&token).is_some());
    std::fs::write(&file, older).expect("a file");
    let with = Tokens::open(folder.path()).expect("tokens");
    assert!(with.principal(&token).is_none());
    let name = PrincipalId::new("oauth:issuer:ann").expect("a name");
    assert!(with.named(&name).is_none() && !with.is_current(&name, Timestamp::from_millis(u64::MAX)));
}

#[tokio::test]
async fn two_programs_can_make_tokens_concurrently() {
    let folder = tempfile::tempdir().expect("a folder");
    std::thread::scope(|scope| {
        for program in 0..4 {
            let folder = folder.path();
            scope.spawn(move || {
                let tokens = Tokens::open(folder).expect("tokens");
                for number in 0..10 {
                    block_on(tokens.create(holder(&format!("{program}-{number}"), &[Role::Caller]))).expect("a token");
                }
            });
        }
    });
    assert_eq!(Tokens::open(folder.path()).expect("tokens").list().await.expect("a list").len(), 40);
}

#[tokio::test]
async fn first_start_takes_a_free_name_for_its_admin() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = Tokens::open(folder.path()).expect("tokens");
    assert!(tokens.is_unused().await.expect("a look"));
    tokens.create(holder("admin", &[Role::Caller])).await.expect("a token");
    assert!(!tokens.is_unused().await.expect("a look"));
    assert!(tokens.first_start(Timestamp::from_millis(1)).await.expect("a start"));
    let names: Vec<_> = tokens.list().await.expect("a list").iter().map(|holder| holder.name.to_string()).collect();
    assert_eq!(names, ["admin", "admin-2"]);
}

#[tokio::test]
async fn first_start_makes_one_admin_token_in_private_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = Tokens::open(folder.path()).expect("tokens");
    assert!(tokens.first_start(Timestamp::from_millis(1)).await.expect("a start"));
    let token = std::fs::read_to_string(Tokens::admin_file(folder.path())).expect("a token");
    assert!(tokens.principal(token.trim()).is_some_and(|admin| admin.roles.has(Role::Admin)));
    assert!(!tokens.first_start(Timestamp::from_millis(2)).await.expect("a start"));
    #[cfg(unix)]
    for name in ["admin-token", "tokens.json"] {
        assert_eq!(mode(&folder.path().join(name)), 0o600, "{name}");
    }
    tokens.revoke(&PrincipalId::new("admin").expect("a name")).await.expect("revoked");
    assert!(
        !tokens.first_start(Timestamp::from_millis(3)).await.expect("a start"),
        "a host without tokens is not a new one"
    );
}
