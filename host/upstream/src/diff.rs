//! The content of a review: how the declarations of a server differ from the accepted ones.

use std::collections::BTreeMap;

use domain::{Digest, tool::Approval};

use crate::parts::{Changed, between};
use crate::pins::AcceptedServer;
use crate::{Declaration, Target};

/// The declarations of a server, compared with the accepted ones.
#[derive(Debug)]
pub struct Review {
    /// Over its target and all its declarations. An acceptance names it, so that it accepts what was reviewed.
    pub digest: Digest,
    /// Where the server is, if it is not a program of this machine.
    pub origin: Option<String>,
    /// The changes of the operator in the target since the acceptance, by part. All of it if nothing was accepted.
    pub target: Vec<Changed>,
    /// Whether there is an acceptance that covers the server's table. Those of earlier versions of this program do not.
    pub covers_server: bool,
    /// By tool, in the server's own names. Tools without a change are left out.
    pub changes: BTreeMap<String, Change>,
    /// The number of tools that are as accepted.
    pub unchanged: usize,
    /// Whether the operator has accepted this server before.
    pub is_known: bool,
    /// The decisions of the operator's configuration about each declared tool, by the server's own names.
    pub gates: BTreeMap<String, Gate>,
    /// The tools that the configuration has a table for and the server does not declare. A renamed tool leaves such a table behind.
    pub unknown: Vec<String>,
    accepts: AcceptedServer,
}

/// The decisions about one tool, if it is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// The name in the catalog.
    pub name: String,
    pub approval: Approval,
    /// Whether a call is repeated after a kill.
    pub is_repeated: bool,
    /// The rules of the host that its declaration breaks. If there are any, it is never offered.
    pub findings: Vec<String>,
}

/// The change of one tool: its parts with their accepted and their new texts.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    Added(Vec<(&'static str, String)>),
    Removed,
    Changed(Vec<Changed>),
}

impl Review {
    pub(crate) fn new(
        accepted: Option<&AcceptedServer>,
        target: &Target,
        listed: &BTreeMap<String, Declaration>,
        gates: BTreeMap<String, Gate>,
        unknown: Vec<String>,
    ) -> Self {
        let none = AcceptedServer::default();
        let before = &accepted.unwrap_or(&none).tools;
        let mut changes = BTreeMap::new();
        for (name, tool) in listed {
            match before.get(name) {
                None => drop(changes.insert(name.clone(), Change::Added(tool.parts()))),
                Some(old) if old.digest() != tool.digest() => {
                    changes.insert(name.clone(), Change::Changed(between(old.parts(), tool.parts())));
                }
                Some(_) => {}
            }
        }
        let unchanged = listed.len() - changes.len();
        let removed = before.keys().filter(|name| !listed.contains_key(*name));
        changes.extend(removed.map(|name| (name.clone(), Change::Removed)));
        let parts = target.parts().into_iter().flat_map(|(part, text)| [part.to_owned(), text]);
        let parts: Vec<_> = parts.chain(listed.values().map(|tool| tool.digest().to_string())).collect();
        let of_target = accepted.and_then(|accepted| accepted.target.as_ref());
        Self {
            digest: Digest::of_parts(&parts.iter().map(String::as_bytes).collect::<Vec<_>>()),
            origin: target.origin(),
            target: between(of_target.map(Target::parts).unwrap_or_default(), target.parts()),
            covers_server: of_target.is_some(),
            changes,
            unchanged,
            is_known: accepted.is_some(),
            gates,
            unknown,
            accepts: AcceptedServer { target: Some(target.clone()), tools: listed.clone() },
        }
    }

    /// Whether an acceptance would change nothing.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.is_known && self.changes.is_empty() && self.covers_server && self.target.is_empty()
    }

    /// The target and the tools that an acceptance accepts.
    #[must_use]
    pub const fn accepts(&self) -> &AcceptedServer {
        &self.accepts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(texts: &[&str]) -> BTreeMap<String, Declaration> {
        let read = texts.iter().map(|text| Declaration::read(text).unwrap());
        read.map(|tool| (tool.name().to_owned(), tool)).collect()
    }

    #[test]
    fn review_names_each_part_that_differs() {
        let before = tools(&[
            r#"{"name":"a","description":"old","inputSchema":{}}"#,
            r#"{"name":"b","inputSchema":{}}"#,
            r#"{"name":"same","inputSchema":{}}"#,
        ]);
        let now = tools(&[
            r#"{"name":"a","description":"new","inputSchema":{}}"#,
            r#"{"name":"c","inputSchema":{}}"#,
            r#"{"name":"same","inputSchema":{}}"#,
        ]);
        let target = |word: &str| Target { command: vec![word.to_owned()], ..Target::default() };
        let of = |accepted: &AcceptedServer, word: &str, tools: &BTreeMap<String, Declaration>| {
            Review::new(Some(accepted), &target(word), tools, BTreeMap::new(), Vec::new())
        };
        let accepted = AcceptedServer { target: Some(target("one")), tools: before.clone() };
        let review = of(&accepted, "one", &now);
        let changed = Change::Changed(vec![("description", Some("old".into()), Some("new".into()))]);
        assert_eq!(review.changes["a"], changed);
        assert_eq!(review.changes["b"], Change::Removed);
        assert!(matches!(&review.changes["c"], Change::Added(parts) if parts.len() == 2));
        assert_eq!((review.changes.len(), review.unchanged, review.target.len()), (3, 1, 0));
        let same = of(&accepted, "one", &before);
        assert!(same.is_accepted() && !review.is_accepted());
        assert_ne!(review.digest, same.digest);
        let moved = of(&accepted, "two", &before);
        assert_eq!(moved.target, [("command", Some("\"one\"".to_owned()), Some("\"two\"".to_owned()))]);
        assert!(moved.digest != same.digest && !moved.is_accepted());
        let earlier = AcceptedServer { target: None, tools: before.clone() };
        assert!(!of(&earlier, "one", &before).is_accepted(), "an acceptance of an earlier version covers no target");
    }
}
