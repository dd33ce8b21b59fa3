//! A host with a router, and a client that checks the headers and the form of every response.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use api::{CompilerStatus, Explanation, FindingView, LandlockState, PluginState, PluginView};
use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use dispatch::ports::{PolicyQuery, Store};
use dispatch::{Dispatcher, Parts, Quota, Quotas};
use domain::{ConversationId, Digest, LoadRule, PluginName, Principal, PrincipalId, Span, Timestamp, principal::Role};
use http_body_util::BodyExt as _;
use serde_json::Value;
use toolgate_server::{
    About, AccessTokens, Authenticate, BackupError, Backups, Checkpoints, ExplainPolicy, Links, McpClients, NotRevoked,
    OpenedBy, PluginFault, Plugins, Ports, PutError, RevokedSessions, ServerSettings, SessionMark, Sessions,
    SigningKey,
};
use toolgate_tests::clock::SimClock;
use toolgate_tests::disk::SimDisk;
use toolgate_tests::world::World;
use tower::ServiceExt as _;

use crate::tools::Shelf;

/// Tokens are names of principals. The name determines the roles. A revoked token is unknown.
struct Names(Arc<Tokens>);

/// The revoked tokens, and how often a token was looked up.
#[derive(Default)]
struct Tokens {
    revoked: Mutex<HashSet<String>>,
    lookups: AtomicU64,
    /// Whether a refresh never ends.
    hang: AtomicBool,
    /// Whether they cannot be read.
    is_unreadable: AtomicBool,
}

#[async_trait]
impl Authenticate for Names {
    async fn refresh(&self) {
        if self.0.hang.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    fn is_readable(&self) -> bool {
        !self.0.is_unreadable.load(Ordering::Relaxed)
    }

    fn principal(&self, token: &str) -> Option<Principal> {
        self.0.lookups.fetch_add(1, Ordering::Relaxed);
        if !self.is_readable() {
            return None;
        }
        if self.0.revoked.lock().unwrap().contains(token) {
            return None;
        }
        let (roles, only): (&[Role], _) = match token {
            "alice" | "eve" => (&[Role::Caller], None),
            "bob" => (&[Role::Approver], None),
            "carol" => (&[Role::Client], None),
            "root" => (&[Role::Admin], None),
            "scoped" => (&[Role::Caller], ConversationId::new("theirs").ok()),
            _ => return None,
        };
        Some(Principal { conversation: only, ..Principal::new(PrincipalId::new(token).ok()?, roles.iter().copied()) })
    }

    fn holder(&self, token: Digest) -> Option<Principal> {
        let name = ALL.into_iter().find(|name| Digest::of(name) == token)?;
        self.principal(name)
    }

    fn named(&self, name: &PrincipalId) -> Option<(Principal, Digest)> {
        self.principal(name.as_str()).map(|principal| (principal, Digest::of(name.as_str())))
    }
}

const ALL: [&str; 6] = ["alice", "eve", "bob", "carol", "root", "scoped"];

/// Revoked sessions in memory: single sessions, and all sessions of a token until a time.
#[derive(Default)]
pub(crate) struct InMemory {
    ids: Mutex<HashSet<u128>>,
    together: Mutex<HashMap<(Digest, OpenedBy), Timestamp>>,
}

#[async_trait]
impl RevokedSessions for InMemory {
    fn has(&self, session: &SessionMark) -> bool {
        let until = self.revoked_until(session.token, session.opened_by);
        until.is_some_and(|until| session.expires <= until) || self.ids.lock().unwrap().contains(&session.id)
    }

    async fn revoke(&self, session: SessionMark, _: Timestamp) -> Result<(), NotRevoked> {
        self.ids.lock().unwrap().insert(session.id);
        Ok(())
    }

    fn revoked_until(&self, token: Digest, opened_by: OpenedBy) -> Option<Timestamp> {
        self.together.lock().unwrap().get(&(token, opened_by)).copied()
    }
}

/// Accepts or refuses plugins by their bytes.
struct Bytewise(Arc<Shelf>);

#[async_trait]
impl Plugins for Bytewise {
    fn list(&self) -> Vec<PluginView> {
        vec![view("shelf", &[])]
    }

    fn loading(&self) -> Vec<PluginName> {
        vec![PluginName::new("next").unwrap()]
    }

    fn is_starting(&self) -> bool {
        self.0.left.load(Ordering::SeqCst) > 0
    }

    async fn put(&self, name: PluginName, component: Bytes, _: PrincipalId) -> Result<PluginView, PutError> {
        match &component[..] {
            b"bad" => Err(PutError::Refused(vec![finding(LoadRule::GatedHuman), finding(LoadRule::NoServer)])),
            b"disk" => Err(PluginFault("the secret path /srv/x is full".into()).into()),
            b"panic" => panic!("out of luck"),
            _ => Ok(view(name.as_str(), &["echo"])),
        }
    }

    async fn remove(&self, name: PluginName, _: PrincipalId) -> Result<bool, PluginFault> {
        Ok(name.as_str() == "shelf")
    }
}

#[async_trait]
impl Backups for Bytewise {
    async fn begin(&self) -> Result<tokio::sync::mpsc::Receiver<std::io::Result<Vec<u8>>>, BackupError> {
        let (sender, parts) = tokio::sync::mpsc::channel(2);
        for part in ["all ", "of it"] {
            let _ = sender.send(Ok(part.into())).await;
        }
        Ok(parts)
    }
}

#[async_trait]
impl Checkpoints for Bytewise {
    async fn newest(&self) -> std::io::Result<Option<api::SignedCheckpoint>> {
        let [checkpoint, signature, public_key] = ["{}", "sig", "ed25519:key"].map(str::to_owned);
        Ok(Some(api::SignedCheckpoint { checkpoint, signature, public_key }))
    }
}

#[async_trait]
impl ExplainPolicy for Bytewise {
    async fn explain(&self, question: PolicyQuery) -> Explanation {
        Explanation {
            rule: api::Rule(domain::gate::RuleEffect::Ask),
            by: Some(format!("the rule about {}", question.caller)),
            reason: question.context.map(|context| context.to_string()),
            risk: Some(api::Risk(domain::tool::Risk::High)),
            needs: Vec::new(),
            declared: api::Approval(domain::tool::Approval::Auto),
            effective: api::Effect::Ask,
            steps: Vec::new(),
            invalid: Vec::new(),
        }
    }
}

fn view(name: &str, tools: &[&str]) -> PluginView {
    PluginView {
        name: name.into(),
        sandboxed: true,
        origin: None,
        digest: Some(domain::Digest::of(name).to_string()),
        tools: tools.iter().map(ToString::to_string).collect(),
        state: PluginState::Live,
        built_against: None,
        findings: Vec::new(),
        notes: Vec::new(),
        needs_review: false,
        access: None,
    }
}

fn finding(rule: LoadRule) -> FindingView {
    FindingView {
        tool: Some("t".into()),
        rule: api::LoadRule(rule),
        message: "it is wrong".into(),
        remedy: "mend it".into(),
    }
}

/// A host with a router.
pub(crate) struct TestServer {
    pub(crate) router: Router,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) disk: Arc<SimDisk>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) host: Dispatcher,
    settings: ServerSettings,
    sessions: Sessions,
    revoked_sessions: Arc<InMemory>,
    tokens: Arc<Tokens>,
    mcp_clients: Option<Arc<dyn McpClients>>,
    access_tokens: Option<Arc<dyn AccessTokens>>,
}

impl TestServer {
    pub(crate) fn new() -> Self {
        Self::with(ServerSettings::default())
    }

    /// Must be called in a runtime, as [`Dispatcher::start`].
    pub(crate) fn with(settings: ServerSettings) -> Self {
        Self::with_quota(settings, Quota::default())
    }

    /// With a quota for each principal.
    pub(crate) fn with_quota(settings: ServerSettings, each: Quota) -> Self {
        Self::over(Arc::new(store::MemoryStore::new()), settings, each)
    }

    pub(crate) fn with_store(store: Arc<dyn Store>) -> Self {
        Self::over(store, ServerSettings::default(), Quota::default())
    }

    /// Over a store of the test.
    pub(crate) fn over(store: Arc<dyn Store>, settings: ServerSettings, each: Quota) -> Self {
        // It begins with the year 2026.
        let world = World::at(Timestamp::from_millis(1_767_225_600_000));
        let shelf = Arc::new(Shelf::new());
        let quotas = Quotas { each, ..Quotas::default() };
        let host = Dispatcher::start(Parts { store, quotas, ..world.parts(shelf.clone()) });
        let revoked_sessions = Arc::<InMemory>::default();
        let sessions = Sessions { key: SigningKey::new([7; 32]), revoked: revoked_sessions.clone() };
        let (router, clock, disk) = (Router::new(), world.clock, world.disk);
        let mut world = Self {
            router,
            clock,
            disk,
            shelf,
            host,
            settings,
            sessions,
            revoked_sessions,
            tokens: Arc::default(),
            mcp_clients: None,
            access_tokens: None,
        };
        world.restart_server();
        world
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Span::from_secs(seconds));
    }

    /// A new router with the same key for the same host. To a browser, this is a restart.
    pub(crate) fn restart_server(&mut self) {
        let ports = Ports {
            handle: self.host.handle(),
            plugins: Arc::new(Bytewise(self.shelf.clone())),
            policy: Arc::new(Bytewise(self.shelf.clone())),
            auth: Arc::new(Names(self.tokens.clone())),
            access_tokens: self.access_tokens.clone(),
            sessions: self.sessions.clone(),
            backups: Arc::new(Bytewise(self.shelf.clone())),
            checkpoints: Arc::new(Bytewise(self.shelf.clone())),
            mcp_clients: self.mcp_clients.clone(),
            about: About {
                host: Some("a".into()),
                address: "http://127.0.0.1:7420".into(),
                compiler: CompilerStatus {
                    own_process: true,
                    landlock: Some(LandlockState::Full),
                    seccomp: Some(true),
                },
                audit_key: Some("ed25519:key".into()),
            },
            settings: self.settings.clone(),
        };
        self.router = toolgate_server::router(ports);
    }

    /// From now on this port answers MCP clients.
    pub(crate) fn answer_mcp_clients(&mut self, clients: Arc<dyn McpClients>) {
        self.mcp_clients = Some(clients);
        self.restart_server();
    }

    /// From now on this port checks access tokens.
    pub(crate) fn accept_access_tokens(&mut self, tokens: Arc<dyn AccessTokens>) {
        self.access_tokens = Some(tokens);
        self.restart_server();
    }

    /// Makes links, as webhooks do.
    pub(crate) fn links(&self) -> Links {
        Links::new(self.host.handle(), self.sessions.key.clone(), Arc::new(Names(self.tokens.clone())))
    }

    /// How often a token was looked up.
    pub(crate) fn lookups(&self) -> u64 {
        self.tokens.lookups.load(Ordering::Relaxed)
    }

    /// From now on the tokens cannot be read.
    pub(crate) fn hang_tokens(&self) {
        self.tokens.hang.store(true, Ordering::Relaxed);
    }

    /// From now on the tokens cannot be read, or can be read again.
    pub(crate) fn make_tokens_readable(&self, readable: bool) {
        self.tokens.is_unreadable.store(!readable, Ordering::Relaxed);
    }

    /// Revokes a token.
    pub(crate) fn revoke(&self, who: &str) {
        self.tokens.revoked.lock().unwrap().insert(who.to_owned());
    }

    /// Revokes all sessions of this token until a time, as many log-outs do.
    pub(crate) fn revoke_sessions_together(&self, who: &str, opened_by: OpenedBy, until: Timestamp) {
        self.revoked_sessions.together.lock().unwrap().insert((Digest::of(who), opened_by), until);
    }

    /// Sends a GET request.
    pub(crate) async fn get(&self, who: &str, path: &str) -> Reply {
        self.send(request("GET", path, who, None)).await
    }

    /// Sends a POST request with a JSON body.
    pub(crate) async fn post(&self, who: &str, path: &str, body: &str) -> Reply {
        self.send(request("POST", path, who, Some(body))).await
    }

    /// Submits a turn in the conversation `c`.
    pub(crate) async fn submit(&self, query: &str, body: &str) -> Reply {
        self.post("alice", &format!("/v1/conversations/c/turns{query}"), body).await
    }

    /// Answers a suspension.
    pub(crate) async fn resolve(&self, who: &str, suspension: &str, body: &str) -> Reply {
        self.post(who, &format!("/v1/suspensions/{suspension}/resolve"), body).await
    }

    /// Sends a request and checks the rules for every response.
    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        let reply = Reply { status: parts.status, headers: parts.headers, text };
        reply.check();
        reply
    }
}

/// A request to this machine. An empty name sends no token.
pub(crate) fn request(method: &str, path: &str, who: &str, body: Option<&str>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:7717");
    if !who.is_empty() {
        request = request.header(header::AUTHORIZATION, format!("Bearer {who}"));
    }
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_owned()))).unwrap()
}

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    fn check(&self) {
        assert_eq!(self.headers[header::CACHE_CONTROL], "no-store");
        assert_eq!(self.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert!(!self.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
        let kind = self.headers[header::CONTENT_TYPE].to_str().unwrap();
        if self.status.as_u16() < 400 {
            let kinds = ["application/json", "application/octet-stream"];
            assert!(kinds.contains(&kind) || kind.starts_with("text/plain; version"), "{kind}");
            return;
        }
        assert_eq!(kind, "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        assert_eq!(problem["type"], format!("/problems/{}", problem["code"].as_str().unwrap()));
        assert!(!problem["title"].as_str().unwrap().is_empty() && !problem["detail"].as_str().unwrap().is_empty());
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// The status, and the code of a problem.
    pub(crate) fn code(&self) -> String {
        let code = self.json().get("code").map(|code| format!(" {}", code.as_str().unwrap()));
        format!("{}{}", self.status.as_u16(), code.unwrap_or_default())
    }

    /// The status and the body, formatted.
    pub(crate) fn pretty(&self) -> String {
        format!("{}\n{}\n", self.status.as_u16(), serde_json::to_string_pretty(&self.json()).unwrap())
    }

    /// The text at a place.
    pub(crate) fn at(&self, pointer: &str) -> String {
        let found = self.json().pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        found.unwrap_or_else(|| panic!("nothing at {pointer} of {}", self.text))
    }
}
