//! The content of a review: how the declarations of a server differ from the accepted ones.

use std::collections::BTreeMap;

use domain::Digest;

use crate::Declaration;

/// The declarations of a server, compared with the accepted ones.
#[derive(Debug)]
pub struct Review {
    /// Over all its declarations. An acceptance names it, so that it accepts what was reviewed.
    pub digest: Digest,
    /// By tool, in the server's own names. Tools without a change are left out.
    pub changes: BTreeMap<String, Change>,
    /// The number of tools that are as accepted.
    pub unchanged: usize,
    /// Whether the operator has accepted this server before.
    pub is_known: bool,
    pub(crate) declared: Vec<Declaration>,
}

/// The change of one tool: its parts with their accepted and their new texts.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    Added(Vec<(&'static str, String)>),
    Removed,
    Changed(Vec<(&'static str, Option<String>, Option<String>)>),
}

impl Review {
    pub(crate) fn new(
        accepted: Option<&BTreeMap<String, Declaration>>,
        listed: &BTreeMap<String, Declaration>,
    ) -> Self {
        let none = BTreeMap::new();
        let before = accepted.unwrap_or(&none);
        let mut changes = BTreeMap::new();
        for (name, tool) in listed {
            match before.get(name) {
                None => drop(changes.insert(name.clone(), Change::Added(tool.parts()))),
                Some(old) if old.digest() != tool.digest() => {
                    changes.insert(name.clone(), Change::Changed(between(old, tool)));
                }
                Some(_) => {}
            }
        }
        let unchanged = listed.len() - changes.len();
        let removed = before.keys().filter(|name| !listed.contains_key(*name));
        changes.extend(removed.map(|name| (name.clone(), Change::Removed)));
        let digests: Vec<String> = listed.values().map(|tool| tool.digest().to_string()).collect();
        let digest = Digest::of_parts(&digests.iter().map(String::as_bytes).collect::<Vec<_>>());
        Self { digest, changes, unchanged, is_known: accepted.is_some(), declared: listed.values().cloned().collect() }
    }

    /// All declarations of the server, for an acceptance.
    #[must_use]
    pub fn declared(&self) -> &[Declaration] {
        &self.declared
    }
}

/// The parts that differ.
fn between(old: &Declaration, new: &Declaration) -> Vec<(&'static str, Option<String>, Option<String>)> {
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) =
        (old.parts().into_iter().collect(), new.parts().into_iter().collect());
    let parts: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).copied().collect();
    let pair = |part: &'static str| (part, old.get(part).cloned(), new.get(part).cloned());
    parts.into_iter().map(pair).filter(|(_, old, new)| old != new).collect()
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
        let review = Review::new(Some(&before), &now);
        let changed = Change::Changed(vec![("description", Some("old".into()), Some("new".into()))]);
        assert_eq!(review.changes["a"], changed);
        assert_eq!(review.changes["b"], Change::Removed);
        assert!(matches!(&review.changes["c"], Change::Added(parts) if parts.len() == 2));
        assert_eq!((review.changes.len(), review.unchanged), (3, 1));
        assert_ne!(review.digest, Review::new(None, &before).digest);
    }
}
