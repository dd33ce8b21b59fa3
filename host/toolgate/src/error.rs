//! Why a host does not open.

use std::path::PathBuf;

use crate::config::ConfigError;

/// Why a host does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configuration names something that does not exist.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data folder cannot be used.
    #[error("the data folder {} cannot be used", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        reason: std::io::Error,
    },
    /// Another host runs on the data folder.
    #[error("another host runs on the data folder {}; stop it, or choose another folder", .0.display())]
    InUse(PathBuf),
    /// The store cannot be opened.
    #[error("the store cannot be opened")]
    Store(#[from] store::OpenError),
    /// The database of the turns cannot be used.
    #[cfg(feature = "postgres")]
    #[error("the store cannot be opened")]
    Database(#[from] store::PostgresError),
    /// The registry of plugins cannot be opened.
    #[error("the registry of plugins cannot be opened")]
    Registry(#[from] registry::OpenError),
    /// The start cannot be recorded in the audit log.
    #[error("the start cannot be recorded in the audit log")]
    Audit(#[from] dispatch::ports::StoreFault),
    /// The sandbox cannot be set up.
    #[error("the sandbox cannot be set up: {0}")]
    Sandbox(String),
    /// The accepted tools of upstream MCP servers cannot be read.
    #[cfg(feature = "upstream")]
    #[error("the accepted tools of upstream MCP servers cannot be read")]
    Upstreams(#[from] upstream::PinsFault),
    /// The threads for guests cannot be started.
    #[error("the threads for guests cannot be started")]
    Threads(#[source] std::io::Error),
}
