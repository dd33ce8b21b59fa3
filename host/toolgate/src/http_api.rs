//! The HTTP API of a host: implements the server's traits for plugins, policies and sessions.

use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api::{
    AccessView, Effect, ExplainedStep, Explanation, FindingView, NoteView, PluginState, PluginView, RequestState,
    RequestedView, SignedCheckpoint,
};
use async_trait::async_trait;
use dispatch::ports::PolicyQuery;
use domain::{PluginName, PrincipalId, Span};
use registry::grants::{GrantState, RequestedGrant, words};
use registry::{Access, Finding, GrantHolder, LoadRule, NotLoaded, Note, PluginStatus, Registry};
use server::{
    About, AccessTokens, Checkpoints, Connections, ExplainPolicy, Hosts, LongRequests, PluginFault, Plugins, Ports,
    PutError, ServerSettings, Sessions, TlsFiles,
};

use crate::access_tokens::{AllPrincipals, OfIssuer};
use crate::backup::HostBackups;
use crate::checkpoint;
use crate::compiler;
use crate::config::{OauthTable, ServerTable, TlsTable};
use crate::host::{Host, Kept};
use crate::record::Actors;
use crate::tokens::Tokens;

/// How long a host that must stop waits for the calls that run, by default.
const DRAIN: Duration = Duration::from_secs(10);

/// The HTTP API of a host, for the holders of these tokens. Makes the key of sessions and links at the first start.
///
/// `table` limits clients. `oauth` names an authorization server, whose access tokens are accepted too. `listen` is the address of the server. If other machines can reach it, requests under every host name
/// are answered; if not, only requests under its own names and those in `hosts`. An address that other machines can reach needs
/// TLS, or a proxy that serves it: see [`ServerTable::check`].
///
/// From now on, votes, delegations and standing approvals of a principal count only while its token is valid.
///
/// # Errors
/// With the kind `InvalidInput` for [`InTheClear`]. When the files of sessions and links in the data folder cannot be read or written.
pub async fn open(
    host: &Host,
    tokens: Arc<Tokens>,
    listen: SocketAddr,
    hosts: Vec<String>,
    (table, oauth): (&ServerTable, Option<&OauthTable>),
) -> std::io::Result<Ports> {
    table.check(listen).map_err(|error| {
        std::io::Error::new(std::io::ErrorKind::InvalidInput, format!("{error}: {}", InTheClear::REMEDY))
    })?;
    let (folder, now) = (host.data(), host.handle.now());
    crate::backup::clean(folder)?;
    let sessions = Sessions { key: host.files.keys.signing()?, revoked: host.files.revoked(now).await? };
    let issuer = oauth.map(|table| Arc::new(OfIssuer::new(table)));
    let subjects = issuer.as_ref().map(|issuer| issuer.names().clone());
    // A second API of the same host has the tokens of the same folder.
    let _ = host.principals.0.set(Arc::new(AllPrincipals { tokens: tokens.clone(), subjects }));
    let scheme = if table.tls.is_some() { "https" } else { "http" };
    let address = format!("{scheme}://{listen}");
    let hosts = if is_loopback(listen) { Hosts::Local { also: hosts } } else { Hosts::Any };
    Ok(Ports {
        handle: host.handle.clone(),
        plugins: Arc::new(LivePlugins {
            registry: host.registry.clone(),
            #[cfg(feature = "upstream")]
            upstreams: host.servers.upstreams.clone(),
            actors: host.actors.clone(),
            are_deployed: host.files.keys.are_shared(),
        }),
        policy: Arc::new(Explaining(host.policy.clone())),
        auth: tokens,
        access_tokens: issuer.map(|issuer| issuer as Arc<dyn AccessTokens>),
        sessions,
        backups: Arc::new(HostBackups {
            kept: host.kept.clone(),
            data: folder.to_owned(),
            handle: host.handle.clone(),
            one: Arc::default(),
        }),
        checkpoints: Arc::new(CheckpointFiles(folder.to_owned())),
        mcp_clients: None,
        about: About {
            host: host.kept.name(),
            address,
            compiler: compiler::status(host.sandbox.clone()).await,
            audit_key: (!matches!(host.kept, Kept::Memory))
                .then(|| checkpoint::public_key(&host.files.keys))
                .transpose()?,
        },
        settings: ServerSettings { hosts, ..table.settings() },
    })
}

/// The secret of a host from which the names of the conversations of its MCP clients follow. Makes it at the first start.
///
/// # Errors
/// When its file in the data folder cannot be read or written.
pub fn mcp_key(host: &Host) -> std::io::Result<[u8; 32]> {
    host.files.keys.mcp()
}

/// Why an address is refused: tokens would cross the network in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("other machines could reach {0}, and tokens would cross the network in the clear")]
pub struct InTheClear(pub SocketAddr);

impl InTheClear {
    /// The remedies for the operator.
    pub const REMEDY: &str =
        "name a certificate in `[server.tls]`, or write `behind_proxy = true` in `[server]` if a proxy serves HTTPS";
}

/// Whether only this machine can reach an address.
fn is_loopback(listen: SocketAddr) -> bool {
    listen.ip().to_canonical().is_loopback()
}

impl ServerTable {
    /// Refuses an address that other machines can reach, unless the server or a proxy in front of it serves TLS.
    ///
    /// # Errors
    /// [`InTheClear`].
    pub fn check(&self, listen: SocketAddr) -> Result<(), InTheClear> {
        let is_safe = is_loopback(listen) || self.tls.is_some() || self.behind_proxy;
        if is_safe { Ok(()) } else { Err(InTheClear(listen)) }
    }

    /// The bounds on connections.
    #[must_use]
    pub fn connections(&self) -> Connections {
        let default = Connections::default();
        let max = self.connections.map_or(default.max, NonZeroUsize::get);
        Connections {
            max,
            max_per_peer: self.connections_per_peer.map_or(max.div_ceil(2), NonZeroUsize::get),
            head: span(self.head_ms, default.head),
            head_bytes: self.head_bytes.map_or(default.head_bytes, NonZeroUsize::get),
            stall: span(self.stall_ms, default.stall),
        }
    }

    /// How long a host that must stop waits for the calls that run.
    #[must_use]
    pub fn drain(&self) -> Duration {
        self.drain_seconds.map_or(DRAIN, |seconds| Duration::from_secs(seconds.into()))
    }

    /// The files for TLS.
    #[must_use]
    pub fn tls_files(&self) -> Option<TlsFiles> {
        let files = |tls: &TlsTable| TlsFiles { certificate: tls.certificate.clone(), key: tls.key.clone() };
        self.tls.as_ref().map(files)
    }

    /// The server's settings.
    #[must_use]
    pub fn settings(&self) -> ServerSettings {
        let default = ServerSettings::default();
        ServerSettings {
            turn_bytes: self.turn_bytes.map_or(default.turn_bytes, NonZeroUsize::get),
            answer_bytes: self.answer_bytes.map_or(default.answer_bytes, NonZeroUsize::get),
            body: span(self.body_ms, default.body),
            log_in_body: span(self.log_in_body_ms, default.log_in_body),
            event_streams: self.event_streams.map_or(default.event_streams, NonZeroUsize::get),
            requests: ServerSettings::requests_of(self.connections().max),
            long_requests: self.long_requests(),
            unread_bytes: self.unread_bytes.map_or(default.unread_bytes, NonZeroUsize::get),
            bodies_bytes: self.bodies_bytes.map_or(default.bodies_bytes, NonZeroUsize::get),
            recheck: span(self.recheck_ms, default.recheck),
            origins: self.origins.iter().map(|origin| origin.0.as_str().to_owned()).collect(),
            ..default
        }
    }

    pub(crate) fn long_requests(&self) -> LongRequests {
        let max = self.long_requests.map_or_else(|| LongRequests::of(self.connections().max).max, NonZeroUsize::get);
        let default = LongRequests::of_max(max);
        LongRequests {
            max,
            reserved: self.long_requests_reserved.unwrap_or(default.reserved),
            max_per_principal: self.long_requests_per_principal.map_or(default.max_per_principal, NonZeroUsize::get),
        }
    }
}

fn span(own: Option<NonZeroU64>, default: Span) -> Span {
    own.map_or(default, |own| Span::from_millis(own.get()))
}

/// The files with checkpoints in this data folder.
struct CheckpointFiles(PathBuf);

#[async_trait]
impl Checkpoints for CheckpointFiles {
    async fn newest(&self) -> std::io::Result<Option<SignedCheckpoint>> {
        let data = self.0.clone();
        tokio::task::spawn_blocking(move || checkpoint::newest(&data)).await.map_err(std::io::Error::other)?
    }
}

struct Explaining(Arc<policy::Combined>);

#[async_trait]
impl ExplainPolicy for Explaining {
    async fn explain(&self, question: PolicyQuery) -> Explanation {
        explanation(&self.0.explain(&question).await)
    }
}

/// An explanation in the form of the API.
#[must_use]
pub fn explanation(explained: &policy::Explanation) -> Explanation {
    let policy::Explanation { verdict, declared, effect, steps } = explained;
    let step = |step: &policy::Step| ExplainedStep {
        name: step.name.to_string(),
        matched: step.matched,
        rule: (&step.rule).into(),
        why: step.why.clone(),
    };
    Explanation {
        rule: (&verdict.rule).into(),
        by: verdict.by.as_deref().map(str::to_owned),
        reason: verdict.reason.as_deref().map(str::to_owned),
        risk: verdict.risk.as_ref().map(Into::into),
        needs: verdict.needs.iter().map(Into::into).collect(),
        declared: declared.into(),
        effective: match effect {
            policy::CallEffect::Run => Effect::Run,
            policy::CallEffect::Ask => Effect::Ask,
            policy::CallEffect::Deny => Effect::Deny,
        },
        steps: steps.iter().map(step).collect(),
        invalid: Vec::new(),
    }
}

struct LivePlugins {
    registry: Registry,
    #[cfg(feature = "upstream")]
    upstreams: upstream::Upstreams,
    actors: Actors,
    are_deployed: bool,
}

impl LivePlugins {
    fn one(&self, name: &PluginName) -> Option<PluginView> {
        self.registry.plugins().iter().find(|status| status.name == *name).and_then(view)
    }
}

#[async_trait]
impl Plugins for LivePlugins {
    fn list(&self) -> Vec<PluginView> {
        let misnamed = self.registry.misnamed().into_iter().map(|(path, finding)| misnamed(&path, &finding));
        let mut all: Vec<_> = self.registry.plugins().iter().filter_map(view).chain(misnamed).collect();
        #[cfg(feature = "upstream")]
        all.extend(self.upstreams.status().iter().map(crate::upstreams::view));
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn loading(&self) -> Vec<PluginName> {
        self.registry.loading()
    }

    fn is_starting(&self) -> bool {
        self.registry.is_starting()
    }

    fn are_deployed(&self) -> bool {
        self.are_deployed
    }

    async fn put(
        &self,
        name: PluginName,
        component: axum::body::Bytes,
        by: PrincipalId,
    ) -> Result<PluginView, PutError> {
        let _acting = self.actors.acting(&name, by);
        match self.registry.put(name.clone(), component.to_vec()).await {
            Ok(_) => {
                self.one(&name).ok_or_else(|| PluginFault(format!("{name} was unloaded while it was loaded")).into())
            }
            Err(NotLoaded::Rejected { findings, .. }) => Err(PutError::Refused(findings.iter().map(finding).collect())),
            Err(NotLoaded::Fault(error)) => Err(fault(&error).into()),
        }
    }

    async fn remove(&self, name: PluginName, by: PrincipalId) -> Result<bool, PluginFault> {
        let _acting = self.actors.acting(&name, by);
        self.registry.remove(name).await.map_err(|error| fault(&error))
    }
}

fn fault(error: &std::io::Error) -> PluginFault {
    PluginFault(error.to_string())
}

/// A plugin: its live component, if there is one, and the findings of the last refused component. `None` if it has just
/// been unloaded.
fn view(status: &PluginStatus) -> Option<PluginView> {
    let findings = status.rejected.iter().flat_map(|(_, findings)| findings.iter().map(finding)).collect();
    let (state, digest, tools) = match (&status.live, &status.rejected) {
        (Some((digest, tools)), _) => {
            (PluginState::Live, Some(digest), tools.iter().map(ToString::to_string).collect())
        }
        (None, rejected) if status.loading => {
            (PluginState::Loading, rejected.as_ref().map(|(digest, _)| digest), Vec::new())
        }
        (None, Some((digest, _))) => (PluginState::Rejected, Some(digest), Vec::new()),
        (None, None) => return None,
    };
    let rejected = status.rejected.iter().flat_map(|(_, findings)| findings);
    Some(PluginView {
        name: status.name.to_string(),
        digest: digest.map(ToString::to_string),
        sandboxed: true,
        origin: None,
        built_against: status.built_against.clone(),
        tools,
        state,
        needs_review: rejected.into_iter().any(|finding| finding.rule == LoadRule::NeedsReview),
        findings,
        notes: status.notes.iter().map(note).collect(),
        access: status.access.as_ref().map(access),
    })
}

/// A file that is no plugin because of its name. The host did not read it.
fn misnamed(path: &Path, about: &Finding) -> PluginView {
    PluginView {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        digest: None,
        sandboxed: true,
        origin: None,
        built_against: None,
        tools: Vec::new(),
        state: PluginState::Rejected,
        needs_review: false,
        findings: vec![finding(about)],
        notes: Vec::new(),
        access: None,
    }
}

fn note(note: &Note) -> NoteView {
    NoteView { tool: note.tool.to_string(), message: note.message.clone() }
}

fn access(access: &Access) -> AccessView {
    let view = |request: RequestedGrant| RequestedView {
        what: request.what,
        why: request.why,
        state: match request.state {
            GrantState::Granted => RequestState::Granted,
            GrantState::InPart => RequestState::InPart,
            GrantState::Missing => RequestState::Missing,
            GrantState::Impossible => RequestState::Impossible,
        },
        refusal: request.refusal,
    };
    AccessView {
        requested: access.manifest.as_ref().map(|_| access.requested().into_iter().map(view).collect()),
        granted: words(&access.granted),
        granted_to: match &access.holder {
            GrantHolder::AnyComponent => vec!["any".to_owned()],
            GrantHolder::Components(components) => components.iter().map(ToString::to_string).collect(),
        },
        effective: words(&access.effective),
        replayable: access.effective.is_replayable(),
    }
}

fn finding(finding: &Finding) -> FindingView {
    FindingView {
        tool: finding.tool.clone(),
        rule: api::LoadRule(finding.rule),
        message: finding.message.clone(),
        remedy: finding.remedy.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn api_in_the_clear_is_not_opened_to_other_machines() {
        let folder = tempfile::tempdir().unwrap();
        let [plugins, data] = ["plugins", "data"].map(|name| folder.path().join(name));
        std::fs::create_dir(&plugins).unwrap();
        let host = Host::builder().plugins(plugins).data(data).memory().open().await.unwrap();
        let tokens = Arc::new(Tokens::open(host.data()).unwrap());
        let refused = async |listen: &str, table: &ServerTable| {
            let opened = open(&host, tokens.clone(), listen.parse().unwrap(), Vec::new(), (table, None)).await;
            opened.err().map(|error| (error.kind(), error.to_string().contains("`behind_proxy = true`")))
        };
        let far = ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1"];
        for listen in far {
            let kind = std::io::ErrorKind::InvalidInput;
            assert_eq!(refused(listen, &ServerTable::default()).await, Some((kind, true)), "{listen}");
        }
        for listen in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(refused(listen, &ServerTable::default()).await, None, "{listen}");
        }
        let (certificate, key) = ("c.pem".into(), "k.pem".into());
        let safe = [
            ServerTable { behind_proxy: true, ..ServerTable::default() },
            ServerTable { tls: Some(TlsTable { certificate, key }), ..ServerTable::default() },
        ];
        for table in safe {
            assert_eq!(refused(far[0], &table).await, None);
        }
    }
}
