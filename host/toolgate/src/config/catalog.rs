//! The table `[catalog]`: every limit of [`domain::CatalogLimits`], with its unit in its name.

use domain::{CatalogLimits, Span};
use schemars::JsonSchema;
use serde::Deserialize;

use super::within::Within;

const MAX: CatalogLimits = CatalogLimits::MAX;

/// Limits on what one plugin declares, and on the run in which it does so. A plugin that exceeds them is refused. Each key has a
/// default and a maximum.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CatalogTable {
    /// The number of tools. Default: 256. Maximum: 4096.
    pub tools: Option<Within<{ MAX.tools as u64 }>>,
    /// The size of the answer of `tools()`, and of the packed declaration, in bytes. Default: 1048576, 1 MiB. Maximum: 16777216,
    /// 16 MiB.
    pub declaration_bytes: Option<Within<{ MAX.declaration as u64 }>>,
    /// The size of the description of one tool, in bytes. Default: 8192, 8 KiB. Maximum: 262144, 256 KiB.
    pub description_bytes: Option<Within<{ MAX.description as u64 }>>,
    /// The size of one schema, in bytes. Default: 65536, 64 KiB. Maximum: 262144, 256 KiB.
    pub schema_bytes: Option<Within<{ MAX.schema as u64 }>>,
    /// The size of the options of one tool, in bytes. Default: 196608, 192 KiB. Maximum: 1048576, 1 MiB.
    pub options_bytes: Option<Within<{ MAX.options as u64 }>>,
    /// Time from instantiation to the answer of `tools()`, in milliseconds. Default: 2000. Maximum: 60000.
    pub time_ms: Option<Within<{ MAX.time.millis() }>>,
    /// The size of all linear memories together, in bytes. Default: 67108864, 64 MiB. Maximum: 4294967296, 4 GiB.
    pub memory_bytes: Option<Within<{ MAX.memory as u64 }>>,
    /// The number of elements of all tables together. Default: 20000. Maximum: 10000000.
    pub table_elements: Option<Within<{ MAX.table_elements as u64 }>>,
    /// The number of core instances of the component. Default: 16. Maximum: 1000, and at most `compile.core_instances`.
    pub instances: Option<Within<{ MAX.instances as u64 }>>,
    /// The number of resource handles that the guest can hold at once. Default: 256. Maximum: 65536.
    pub handles: Option<Within<{ MAX.handles as u64 }>>,
    /// The host memory of the run, in bytes. Default: 1048576, 1 MiB. Maximum: 268435456, 256 MiB.
    pub host_bytes: Option<Within<{ MAX.host_bytes as u64 }>>,
    /// The number of calls of host functions. Default: 100000. Maximum: 100000000.
    pub host_calls: Option<Within<{ MAX.host_calls }>>,
}

impl CatalogTable {
    /// The limits of this table. Other limits have their defaults.
    #[must_use]
    pub fn limits(&self) -> CatalogLimits {
        let default = CatalogLimits::default();
        CatalogLimits {
            tools: self.tools.map_or(default.tools, Within::size),
            declaration: self.declaration_bytes.map_or(default.declaration, Within::size),
            description: self.description_bytes.map_or(default.description, Within::size),
            schema: self.schema_bytes.map_or(default.schema, Within::size),
            options: self.options_bytes.map_or(default.options, Within::size),
            time: self.time_ms.map_or(default.time, |time| Span::from_millis(time.get())),
            memory: self.memory_bytes.map_or(default.memory, Within::size),
            table_elements: self.table_elements.map_or(default.table_elements, Within::size),
            instances: self.instances.map_or(default.instances, Within::size),
            handles: self.handles.map_or(default.handles, Within::size),
            host_bytes: self.host_bytes.map_or(default.host_bytes, Within::size),
            host_calls: self.host_calls.map_or(default.host_calls, Within::get),
        }
    }
}
