//! `wasi:random` over a source that a caller can choose, for example a seeded one.

use std::sync::Arc;

use capabilities::Stop;
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

/// The source of guests' randomness.
pub trait Random: Send + Sync {
    /// # Errors
    /// If the source fails. The call then ends with a fault of the host.
    fn fill(&self, buffer: &mut [u8]) -> std::io::Result<()>;
}

/// The operating system's generator. It serves the secure and the insecure interfaces, because it is fast enough for both.
#[derive(Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) -> std::io::Result<()> {
        getrandom::fill(buffer).map_err(std::io::Error::from)
    }
}

/// The maximum number of random bytes of one host call. The host allocates them.
const MAX_BYTES: u64 = 1 << 20;

pub(crate) struct Guests(pub(crate) Arc<dyn Random>);

impl Guests {
    fn bytes(&self, count: u64) -> wasmtime::Result<Vec<u8>> {
        if count > MAX_BYTES {
            return Err(Stop::FixedLimit(format!(
                "asked for {count} random bytes at once; at most {MAX_BYTES} are allowed"
            ))
            .into());
        }
        let mut buffer = vec![0; usize::try_from(count)?];
        self.0.fill(&mut buffer).map_err(|error| Stop::Fault(format!("the host's random source failed: {error}")))?;
        Ok(buffer)
    }

    fn number(&self) -> wasmtime::Result<u64> {
        let mut buffer = [0; 8];
        self.0.fill(&mut buffer).map_err(|error| Stop::Fault(format!("the host's random source failed: {error}")))?;
        Ok(u64::from_le_bytes(buffer))
    }
}

impl random::Host for Guests {
    fn get_random_bytes(&mut self, count: u64) -> wasmtime::Result<Vec<u8>> {
        self.bytes(count)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.number()
    }
}

impl insecure::Host for Guests {
    fn get_insecure_random_bytes(&mut self, count: u64) -> wasmtime::Result<Vec<u8>> {
        self.bytes(count)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.number()
    }
}

impl insecure_seed::Host for Guests {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.number()?, self.number()?))
    }
}
