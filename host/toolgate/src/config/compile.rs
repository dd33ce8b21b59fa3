//! The table `[compile]`: what one component may cost before anything of it runs.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use sandbox::CompileBounds;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

/// The most that can be said: more is never read from the folder of plugins, nor taken by a door.
const MAX_COMPONENT: usize = 64 << 20;

/// What compiling one component may cost. A component that costs more is refused.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompileTable {
    /// Processor time of the compiler in milliseconds, rounded up to whole seconds. Default: 120000.
    pub time_ms: Option<NonZeroU64>,
    /// How long the compiler may take altogether, in milliseconds: it gives way to everything else that the machine does.
    /// Default: ten times `time_ms`, which is time enough with a tenth of one core.
    pub wall_ms: Option<NonZeroU64>,
    /// Memory of the compiler. Default: 2147483648, 2 GiB.
    pub memory_bytes: Option<NonZeroU64>,
    /// The machine code. Default: 536870912, 512 MiB.
    pub output_bytes: Option<NonZeroU64>,
    /// The component itself. Default, and the most: 67108864, 64 MiB.
    #[serde(deserialize_with = "component_bytes")]
    pub component_bytes: Option<NonZeroUsize>,
}

impl CompileTable {
    /// What the compiler may spend.
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

    /// The largest component that is taken.
    #[must_use]
    pub fn component(&self) -> usize {
        self.component_bytes.map_or(MAX_COMPONENT, NonZeroUsize::get)
    }
}

fn component_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroUsize>, D::Error> {
    let bytes = NonZeroUsize::deserialize(deserializer)?;
    if bytes.get() > MAX_COMPONENT {
        return Err(de::Error::custom(format!("a component has at most {MAX_COMPONENT} bytes")));
    }
    Ok(Some(bytes))
}
