//! The shared parts of the benchmarks: a host with the example plugins, and the submitted turns.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dispatch::{CallRequest, TurnRequest};
use domain::{CallId, ConversationId, Json, PluginName, Principal, event::Rejection};
use toolgate::Host;
use toolgate::config::Config;

/// The file of an example plugin.
pub(crate) fn plugin(name: &str) -> Result<Vec<u8>> {
    let file = repository().join("plugins/target/wasm32-wasip2/release").join(format!("{name}.wasm"));
    std::fs::read(&file).with_context(|| {
        format!("{} is missing: cd plugins && cargo build --release --target wasm32-wasip2", file.display())
    })
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The configuration of a host: one principal submits everything, far more than the default quota.
pub(crate) const QUOTA: &str =
    "quota.open_turns = 1000000\nquota.turns_per_second = 1000000\nquota.bytes_per_second = 1099511627776";

/// A host with the plugin `lab`, on disk in a temporary folder.
pub(crate) async fn host() -> Result<Host> {
    let host = Host::builder().config(Config::parse(QUOTA, Path::new("bench.toml"))?).open().await?;
    load(&host, "lab").await?;
    Ok(host)
}

/// Loads an example plugin.
pub(crate) async fn load(host: &Host, name: &str) -> Result<()> {
    load_component(host, name, plugin(name)?).await
}

/// Loads a component.
pub(crate) async fn load_component(host: &Host, name: &str, component: Vec<u8>) -> Result<()> {
    let loaded = host.registry().load(PluginName::new(name)?, component).await;
    loaded.map(drop).map_err(|refused| anyhow::anyhow!("{name} was refused: {refused:?}"))
}

/// Who submits.
pub(crate) fn caller() -> Result<Principal> {
    Ok(Host::principal("bench")?)
}

/// A turn of one call of a tool.
pub(crate) fn turn(conversation: &str, id: &str, tool: &str, ephemeral: bool) -> Result<TurnRequest> {
    Ok(TurnRequest {
        conversation: ConversationId::new(conversation)?,
        calls: vec![CallRequest {
            id: CallId::new(id)?,
            tool: tool.into(),
            arguments: Json::unchecked(ARGUMENTS),
            result: None,
            origin: None,
        }],
        context: None,
        rejection: Rejection::ContinueSiblings,
        ephemeral,
    })
}

/// About a hundred bytes of arguments.
pub(crate) const ARGUMENTS: &str =
    r#"{"value":"the quick brown fox jumps over the lazy dog, and the lazy dog does not mind it at all."}"#;
