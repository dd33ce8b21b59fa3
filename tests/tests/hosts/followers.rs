//! Followers of streams. Each leaves its host after some events, or when its connection ends, and goes on at another host after the
//! last event that it got.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use serde_json::json;
use toolgate_tests::host::{Host, say};
use toolgate_tests::http::{Client, suspension_of};
use toolgate_tests::random::Random;
use toolgate_tests::sse::{Event, Events};

use super::load::Load;

/// A conversation of the load.
const CONVERSATION: &str = "faults0";

/// The ends of all turns, and everything about the turns of one conversation.
const STREAMS: [(&str, &str); 2] =
    [("/v1/events", "/v1/conversations/"), ("/v1/conversations/faults0/events", "/v1/conversations/faults0/")];

/// The maximum number of events for which a follower stays at a host.
const MAX_EVENTS: usize = 20;

/// A stored event. A long run has many, so only the digest of its data is kept.
#[derive(Debug, Clone, PartialEq)]
struct Heard {
    /// The position of its commit, and its number in this commit.
    id: [u64; 2],
    name: String,
    turn: String,
    data: u64,
}

impl Heard {
    /// `None`: the event is not stored.
    fn of(event: &Event) -> Option<Self> {
        let id = event.id.as_ref()?.split_once('-').unwrap();
        let mut data = DefaultHasher::new();
        event.data.to_string().hash(&mut data);
        Some(Self {
            id: [id.0, id.1].map(|number| number.parse().unwrap()),
            name: event.name.clone(),
            turn: event.data["turn"].as_str().unwrap().to_owned(),
            data: data.finish(),
        })
    }

    fn id(&self) -> String {
        format!("{}-{}", self.id[0], self.id[1])
    }
}

/// The events that a follower got of a stream.
pub(super) struct Followed {
    path: &'static str,
    /// The paths of its turns begin with this.
    turns: &'static str,
    heard: Vec<Heard>,
    connections: usize,
}

/// Starts a follower of each stream.
pub(super) fn start(load: &Arc<Load>, seeds: impl Iterator<Item = u64>) -> Vec<JoinHandle<Followed>> {
    let begin = |((path, turns), seed)| {
        let (load, followed) = (load.clone(), Followed { path, turns, heard: Vec::new(), connections: 0 });
        thread::spawn(move || followed.until_last(&load, seed))
    };
    STREAMS.into_iter().zip(seeds).map(begin).collect()
}

impl Followed {
    /// Follows the stream until the end of the last turn.
    fn until_last(mut self, Load { patient: hosts, record, last_turn, .. }: &Load, seed: u64) -> Self {
        let (mut random, mut at) = (Random::new(seed), 0);
        loop {
            at = (at + 1 + random.below(hosts.len() - 1)) % hosts.len();
            let last = self.heard.last().map(Heard::id);
            let Some(events) = stream(&hosts[at].agent, self.path, last.as_deref()) else {
                record.wait_briefly();
                continue;
            };
            self.connections += 1;
            if self.read(events, 1 + random.below(MAX_EVENTS), last_turn) {
                return self;
            }
        }
    }

    /// Reads at most this many events. Returns whether the last turn has ended.
    fn read(&mut self, mut events: Events, max: usize, last_turn: &OnceLock<String>) -> bool {
        for _ in 0..max {
            let Some(event) = events.next_or_end() else { return false };
            let Some(heard) = Heard::of(&event) else { continue };
            let before = self.heard.last().map_or([0; 2], |before| before.id);
            assert!(before < heard.id, "{}: {event:?} comes after {before:?}", self.path);
            let is_last = heard.name == "turn.settled" && last_turn.get() == Some(&heard.turn);
            self.heard.push(heard);
            if is_last {
                return true;
            }
        }
        false
    }

    /// A host sends a reader from the start the same events, each once.
    fn compare(&self, host: &Host) {
        let mut events = host.agent.events(self.path);
        for heard in &self.heard {
            let stored = |event: Event| Heard::of(&event).map(|stored| (stored, event));
            let (found, event) = std::iter::repeat_with(|| events.take()).find_map(stored).unwrap();
            assert_eq!(found, *heard, "{}: {event:?}", self.path);
        }
    }

    /// Each of these turns ended once.
    fn check_ends<'a>(&self, turns: impl Iterator<Item = &'a String>) {
        let ends = self.heard.iter().filter(|heard| heard.name == "turn.settled").map(|end| end.turn.as_str());
        let ended: BTreeSet<_> = ends.clone().collect();
        assert_eq!(ended.len(), ends.count(), "{}: a turn ended twice", self.path);
        for turn in turns.filter(|turn| turn.starts_with(self.turns)) {
            let (_, id) = turn.rsplit_once('/').unwrap();
            assert!(ended.contains(id), "{}: the end of {turn} is missing", self.path);
        }
    }
}

/// A stream at a host after this event. `None`: the host is not there, or takes no requests.
fn stream(at: &Client, path: &str, last: Option<&str>) -> Option<Events> {
    let (status, events) = at.stream(path, last).ok()?;
    assert!([200, 429, 503].contains(&status), "GET {path}: {status}");
    (status == 200).then_some(events)
}

/// Makes a last turn, whose end is the end of each stream. Its id is known before it ends, so no follower misses it.
pub(super) fn end(hosts: &[Host], load: &Load) {
    let call = json!([{"id": "last", "tool": "get_location", "arguments": {}}]);
    let turn = hosts[0].agent.submit(CONVERSATION, call);
    load.last_turn.set(turn["turn"].as_str().unwrap().to_owned()).unwrap();
    let place = json!({"latitude": 0, "longitude": 0, "accuracy": 1});
    let _ = hosts[1].page.resolve(&suspension_of(&turn), json!({"decision": "result", "data": place})).ok(200);
}

/// Each follower got the events of its stream, as each host sends them to a reader from the start.
pub(super) fn check(followed: &[Followed], hosts: &[Host], load: &Load) {
    let turns = load.record.turns();
    thread::scope(|scope| {
        for (stream, host) in followed.iter().flat_map(|stream| hosts.iter().map(move |host| (stream, host))) {
            scope.spawn(move || stream.compare(host));
        }
    });
    for stream in followed {
        stream.check_ends(turns.keys());
        let Followed { path, heard, connections, .. } = stream;
        say(&format!("{path}: {} events on {connections} connections", heard.len()));
    }
}
