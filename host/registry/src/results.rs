//! Checks of results against the schemas that their tools declare. A check of a large result takes up to a tenth of a second and
//! many times its size in memory. So few of them run at once, on threads of their own, and a plugin has one at a time.

use std::io;
use std::sync::Arc;

use dispatch::ports::KnownTool;
use domain::{
    Outcome,
    outcome::{Failure, FailureCode},
    step::RunEnd,
};
use tokio::sync::Semaphore;

use crate::blocking::blocking;
use crate::permits::Permits;

/// A larger result is checked in turn.
const MAX_SMALL: usize = 64 << 10;

/// The largest number of checks of large results at the same time.
const MAX_LARGE: usize = 2;

pub(crate) struct LargeResults(Semaphore);

impl Default for LargeResults {
    fn default() -> Self {
        Self(Semaphore::new(MAX_LARGE))
    }
}

impl LargeResults {
    /// Checks a result in its turn.
    ///
    /// # Errors
    /// The check panicked.
    async fn check<T: Send + 'static>(
        &self,
        plugin: &Permits,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        // In this order: each plugin waits for the others once.
        let _of_plugin = plugin.checking.acquire().await.map_err(io::Error::other)?;
        let _of_all = self.0.acquire().await.map_err(io::Error::other)?;
        blocking(check).await
    }

    /// The end of a run, unless its result breaks the tool's declared schema. The sandbox has already checked that it is JSON.
    pub(crate) async fn checked(&self, plugin: &Permits, tool: Option<&Arc<KnownTool>>, ended: RunEnd) -> RunEnd {
        let RunEnd::Outcome(Outcome::Ok { value, .. }) = &ended else { return ended };
        let Some(tool) = tool.filter(|tool| tool.tool.options.result.is_some()) else { return ended };
        let violations = if value.size() <= MAX_SMALL {
            tool.checks.result(value)
        } else {
            let (tool, value) = (tool.clone(), value.clone());
            match self.check(plugin, move || tool.checks.result(&value)).await {
                Ok(violations) => violations,
                Err(error) => {
                    tracing::error!(%error, "the host could not check a result");
                    let message = "the tool ran, and the host failed to check its result";
                    return Outcome::Failed(Failure::new(FailureCode::HostFault, message)).into();
                }
            }
        };
        if violations.is_empty() {
            return ended;
        }
        let list: Vec<_> = violations.iter().map(ToString::to_string).collect();
        let message = format!("the tool ran, and its result breaks the schema it declares: {}", list.join("; "));
        Outcome::Failed(Failure::new(FailureCode::InvalidResult, message)).into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use domain::Limits;
    use futures::FutureExt as _;
    use futures::future::join_all;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn few_large_results_are_checked_at_once() {
        let large = LargeResults::default();
        let [one, two, three] = [(); 3].map(|()| Permits::new(&Limits::default()));
        let (begun, begins) = mpsc::channel();
        let (ends, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let check = |plugin, name: &'static str| {
            let (begun, gate) = (begun.clone(), gate.clone());
            Box::pin(large.check(plugin, move || {
                begun.send(name).unwrap();
                let _ = gate.lock().unwrap().recv();
            }))
        };
        let mut checks = [check(&one, "one"), check(&one, "one again"), check(&two, "two"), check(&three, "three")];
        assert!(checks.iter_mut().all(|check| check.now_or_never().is_none()));
        let mut first = [begins.recv().unwrap(), begins.recv().unwrap()];
        first.sort_unstable();
        assert_eq!(first, ["one", "two"], "one of each plugin, two of all");
        assert_eq!(large.0.available_permits(), 0);
        drop(ends);
        for checked in join_all(checks).await {
            checked.unwrap();
        }
        let mut rest = [begins.recv().unwrap(), begins.recv().unwrap()];
        rest.sort_unstable();
        assert_eq!(rest, ["one again", "three"]);
    }
}
