//! The table `[compile]`: limits on compiling one component.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use sandbox::CompileBounds;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

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
    #[serde(deserialize_with = "component_bytes")]
    pub component_bytes: Option<NonZeroUsize>,
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
        self.component_bytes.map_or(MAX_COMPONENT, NonZeroUsize::get)
    }
}

fn component_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroUsize>, D::Error> {
    let bytes = NonZeroUsize::deserialize(deserializer)?;
    if bytes.get() > MAX_COMPONENT {
        return Err(de::Error::custom(format!("`component_bytes` must be at most {MAX_COMPONENT}")));
    }
    Ok(Some(bytes))
}
