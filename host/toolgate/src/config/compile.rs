//! The table `[compile]`: limits on compiling one component.

use std::num::NonZeroU64;
use std::time::Duration;

use sandbox::{CompileBounds, ComponentParts};
use schemars::JsonSchema;
use serde::Deserialize;

use super::within::Within;

/// The maximal value of `component_bytes`. The host never reads a larger component.
const MAX_COMPONENT: usize = 64 << 20;

/// Limits on compiling one component. A component that exceeds them is refused.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompileTable {
    /// Processor time of the compiler in milliseconds, rounded up to whole seconds. Default: 120000.
    pub time_ms: Option<NonZeroU64>,
    /// Wall-clock time of the compiler in milliseconds. The compiler runs with low priority. Default: ten times `time_ms`, which
    /// is enough with a tenth of one core.
    pub wall_ms: Option<NonZeroU64>,
    /// Memory of the compiler, in bytes. Default: 2147483648, 2 GiB.
    pub memory_bytes: Option<NonZeroU64>,
    /// The size of the machine code, in bytes. Default: 536870912, 512 MiB.
    pub output_bytes: Option<NonZeroU64>,
    /// The size of the component, in bytes. Default and maximum: 67108864, 64 MiB.
    pub component_bytes: Option<Within<{ MAX_COMPONENT as u64 }>>,
    /// The number of core instances of the component. Calls may be allowed fewer (`limits.instances`). Default: 64. Maximum: 1000.
    pub core_instances: Option<Within<{ ComponentParts::MAX.core_instances as u64 }>>,
    /// The number of linear memories of the component. Default: 4. Maximum: 100.
    pub memories: Option<Within<{ ComponentParts::MAX.memories as u64 }>>,
    /// The number of tables of the component. Default: 8. Maximum: 100.
    pub tables: Option<Within<{ ComponentParts::MAX.tables as u64 }>>,
}

impl CompileTable {
    /// The limits of the compiler.
    #[must_use]
    pub fn bounds(&self) -> CompileBounds {
        let default = CompileBounds::default();
        let time = self.time_ms.map_or(default.time, |time| Duration::from_millis(time.get()));
        CompileBounds {
            time,
            wall: self.wall_ms.map_or(time.saturating_mul(10), |wall| Duration::from_millis(wall.get())),
            memory: self.memory_bytes.map_or(default.memory, NonZeroU64::get),
            output: self.output_bytes.map_or(default.output, NonZeroU64::get),
        }
    }

    /// The maximal size of a component.
    #[must_use]
    pub fn component(&self) -> usize {
        self.component_bytes.map_or(MAX_COMPONENT, Within::size)
    }

    /// The maximum number of each part of a component.
    #[must_use]
    pub fn parts(&self) -> ComponentParts {
        let default = ComponentParts::default();
        ComponentParts {
            core_instances: self.core_instances.map_or(default.core_instances, Within::small),
            memories: self.memories.map_or(default.memories, Within::small),
            tables: self.tables.map_or(default.tables, Within::small),
        }
    }
}
