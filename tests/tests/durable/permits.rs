//! The journals of calls that continue at the same time. A call reads its journal once it has a permit of its plugin.

use dispatch::ports::Permit;
use domain::call::Pinned;
use domain::journal::{Entry, Record};
use tokio::sync::Semaphore;

use super::*;

/// The entries of each journal.
const ENTRIES: u32 = 3;

/// Tools of a plugin that may run one call at a time. A call records something and asks, and after the answer it waits until the
/// test lets it end.
struct OneAtATime {
    tools: WordTools,
    permits: Arc<Semaphore>,
}

impl OneAtATime {
    fn new(may_end: Arc<Semaphore>) -> Self {
        let tools = WordTools::new(&["server:durable=yes"], move |run: Run| {
            let may_end = may_end.clone();
            async move {
                let durable = run.durable.unwrap();
                if durable.steps.is_empty() {
                    let (journal, _) = run.journal.unwrap();
                    journal.append((0..ENTRIES).map(entry).collect(), Vec::new()).await.unwrap();
                    return End::unrun(asks());
                }
                assert_eq!(durable.journal.len(), ENTRIES as usize);
                may_end.acquire().await.unwrap().forget();
                done()
            }
        });
        Self { tools, permits: Arc::new(Semaphore::new(1)) }
    }
}

fn entry(number: u32) -> Entry {
    Entry {
        number,
        step: 0,
        run: None,
        function: None,
        digest: Digest::of(number.to_string()),
        at: Timestamp::from_millis(0),
        salt: None,
        transferred: None,
        record: Record::Result("1".into()),
    }
}

#[async_trait]
impl Tools for OneAtATime {
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>> {
        self.tools.find(name)
    }

    fn pinned(&self, plugin: &PluginName, component: Digest, name: &str) -> Option<Arc<KnownTool>> {
        self.tools.pinned(plugin, component, name)
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        self.tools.list()
    }

    async fn permit(&self, _: &Pinned, _: bool) -> Result<Permit, Outcome> {
        Ok(Box::new(self.permits.clone().acquire_owned().await.unwrap()))
    }

    async fn run(&self, run: Run) -> End {
        self.tools.run(run).await
    }
}

#[tokio::test]
async fn call_reads_its_journal_when_it_has_a_permit() {
    const CALLS: usize = 4;
    let (world, may_end) = (World::default(), Arc::new(Semaphore::new(0)));
    let store = Arc::new(MortalStore::new(world.store.clone()));
    let parts = world.parts(Arc::new(OneAtATime::new(may_end.clone())));
    let running = Dispatcher::start(Parts { store: store.clone(), ..parts });
    let agent = principal("agent", Role::Caller);
    let mut turns = Vec::new();
    for number in 0..CALLS {
        let request = turn("c", [call(&format!("a{number}"), "tool_0", "{}")]);
        turns.push(running.handle().submit(&agent, request).await.unwrap().turn.id);
    }
    settle().await;
    assert_eq!(store.entries_read(), 0, "nothing is recorded before the first run");
    let now = async |id| running.handle().turn(&agent, &conversation("c"), id).await.unwrap();
    for id in &turns {
        let open = now(*id).await.pending().next().unwrap().2.id;
        running.handle().resolve(&principal("ann", Role::Approver), data(open, "\"yes\"")).await.unwrap();
    }
    settle().await;
    for ended in 0..CALLS {
        assert_eq!(store.entries_read(), (ended + 1) * ENTRIES as usize, "{ended} calls have ended, and one runs");
        may_end.add_permits(1);
        settle().await;
    }
    for id in turns {
        assert!(matches!(now(id).await.calls[0].outcome(), Some(Outcome::Ok { .. })));
    }
}
