//! The settings of sandboxes: for hosts, and for checking components.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;

use capabilities::Services;
use capabilities::http::HttpClient;
use capabilities::keyvalue::Service;
use sandbox::{CacheOwner, Sandbox};
use store::KeyValue;

use crate::buckets::StoredBuckets;
use crate::compiler::{CompilerProgram, compiler};
use crate::config::Config;
use crate::error::OpenError;
use crate::machine;

/// The default number of guests that can exist at once.
const POOL: u32 = 1000;

/// The maximal size of a user's cache of compiled code, in bytes.
const MAX_USER_CACHE: u64 = 2 << 30;

/// Where compiled code is kept.
pub(crate) enum Code {
    Nowhere,
    /// In the host's folder, which takes copies from the user's.
    OfHost {
        own: PathBuf,
        user: Option<PathBuf>,
    },
    OfUser(PathBuf),
}

/// A sandbox with the settings of a host, for checking components. It keeps compiled code in the given folder:
/// [`CacheOwner::User`](sandbox::CacheOwner).
///
/// # Errors
/// [`OpenError::Sandbox`].
pub fn checking_sandbox(
    config: &Config,
    compiler: Option<CompilerProgram>,
    user_cache: Option<PathBuf>,
) -> Result<Sandbox, OpenError> {
    sandbox(checking_settings(config, compiler, user_cache))
}

/// The settings of such a sandbox, for callers that change some of them.
#[must_use]
pub fn checking_settings(
    config: &Config,
    compiler: Option<CompilerProgram>,
    user_cache: Option<PathBuf>,
) -> sandbox::SandboxSettings {
    let code = user_cache.map_or(Code::Nowhere, Code::OfUser);
    sandbox_settings(config, compiler, code, StoredBuckets(KeyValue::in_memory()), None)
}

pub(crate) fn sandbox(settings: sandbox::SandboxSettings) -> Result<Sandbox, OpenError> {
    Sandbox::new(settings).map_err(|error| OpenError::Sandbox(format!("{error:#}")))
}

/// The memory of all guests together: half of the memory that this process may use. No limit where that is unknown.
fn guest_memory(memory: Option<u64>) -> usize {
    memory.and_then(|bytes| usize::try_from(bytes / 2).ok()).unwrap_or(usize::MAX)
}

/// The settings of a sandbox.
pub(crate) fn sandbox_settings(
    config: &Config,
    program: Option<CompilerProgram>,
    code: Code,
    buckets: StoredBuckets,
    http: Option<HttpClient>,
) -> sandbox::SandboxSettings {
    let default = sandbox::SandboxSettings::default();
    let (cache, cache_owner, user_cache, cache_bytes) = match code {
        Code::Nowhere => (None, CacheOwner::Host, None, default.cache_bytes),
        Code::OfHost { own, user } => (Some(own), CacheOwner::Host, user, default.cache_bytes),
        Code::OfUser(folder) => (Some(folder), CacheOwner::User, None, MAX_USER_CACHE),
    };
    sandbox::SandboxSettings {
        cache,
        cache_owner,
        user_cache,
        cache_bytes,
        compiler: compiler(program, &config.compile),
        max_component: config.compile.component(),
        parts: config.compile.parts(),
        pool: config.pool.map_or(POOL, NonZeroU32::get),
        guest_memory: config.guest_memory_bytes.map_or_else(|| guest_memory(machine::memory()), NonZeroUsize::get),
        services: Services { keyvalue: Service::over(Arc::new(buckets)), http, ..Services::default() },
        ..default
    }
}

#[cfg(test)]
mod tests {
    use super::guest_memory;

    #[test]
    fn guests_get_half_of_the_memory() {
        assert_eq!(guest_memory(Some(24_000)), 12_000);
        assert_eq!(guest_memory(None), usize::MAX);
    }
}
