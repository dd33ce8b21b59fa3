//! Pages of feeds.

use std::collections::BTreeSet;

use dispatch::ports::{Committed, Facts, Feed, Position};

use super::State;

impl State {
    pub(super) fn follow(&self, feed: &Feed, after: Position, limit: usize, mut bytes: usize) -> Vec<Committed> {
        let from = Position(after.0.saturating_add(1));
        let positions: BTreeSet<_> = match feed {
            Feed::Host => {
                let plugins = self.plugins.range(from..).map(|(position, _)| *position).take(limit);
                plugins.chain(self.ends.range(from..).map(|(position, _)| *position).take(limit)).collect()
            }
            Feed::Caller(caller) => {
                let ends = self.ends.range(from..).filter(|(_, ending)| ending.caller == *caller);
                ends.map(|(position, _)| *position).take(limit).collect()
            }
            Feed::Conversation(conversation) => {
                let range = (conversation.clone(), from)..=(conversation.clone(), Position(u64::MAX));
                self.feeds.range(range).map(|(_, position)| *position).take(limit).collect()
            }
        };
        let mut commits = Vec::new();
        for position in positions.into_iter().take(limit) {
            let ending = self.ends.get(&position).filter(|_| !matches!(feed, Feed::Conversation(_)));
            let Some(&(_, source, record)) = self.links(Position(position.0 - 1), 1).next() else { break };
            if ending.is_none() && record.size > bytes && !commits.is_empty() {
                break;
            }
            let facts = match ending {
                Some(ending) => Some(Facts::Ended(ending.clone())),
                None => {
                    bytes = bytes.saturating_sub(record.size);
                    self.facts_at(position, source)
                }
            };
            commits.extend(facts.map(|facts| Committed { position, facts }));
        }
        commits
    }
}
