//! What people are asked, why, and who may answer. Approvals and questions have this in common.

use std::sync::{Arc, LazyLock};

use crate::{Digest, approvers::Need, tool::Risk};

/// What people are asked, why, and who may answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// Written by the plugin over the call's arguments, so it is untrusted. A program that shows it must escape it.
    pub prompt: Option<Arc<str>>,
    pub prompt_by: PromptBy,
    /// The tool's name for people.
    pub title: Option<String>,
    /// The rule or policy that asks. `None`: the tool itself declares it.
    pub by: Option<Arc<str>>,
    pub reason: Option<Arc<str>>,
    pub risk: Option<Risk>,
    /// The members of the context that belong to the question. `None`: all of them.
    pub context_keys: Option<Arc<[String]>>,
    /// The needs of an approval, all of which must be met. Of a question: who may answer. Empty: any one approver.
    pub needs: Arc<[Need]>,
    /// Whether a policy could not be asked, so that a person is asked instead.
    pub policy_failed: bool,
}

/// The needs of an approval that names nobody: any one approver.
static ANY_APPROVER: LazyLock<[Need; 1]> = LazyLock::new(|| [Need { who: Arc::new([]), quorum: 1, escalate: None }]);

impl Asked {
    /// The needs, at least one.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        if self.needs.is_empty() { ANY_APPROVER.as_slice() } else { &self.needs }
    }

    /// The approval fingerprint: a digest over why the call needs an approval, and whose. A standing approval covers
    /// only calls with the same fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        let risk = self.risk.map_or("", Risk::as_str);
        let why = [self.by.as_deref().unwrap_or_default(), self.reason.as_deref().unwrap_or_default(), risk];
        let mut parts: Vec<String> = why.into_iter().map(str::to_owned).collect();
        for need in self.needs.iter() {
            let names =
                |who: &[crate::approvers::Who]| who.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let wider = need.escalate.as_ref().map(|wider| format!("{} {}", wider.after.millis(), names(&wider.to)));
            parts.push(format!("{} {}", need.quorum, names(&need.who)));
            parts.push(wider.unwrap_or_default());
        }
        Digest::of_parts(&parts.iter().map(String::as_bytes).collect::<Vec<_>>())
    }
}

/// Who wrote a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PromptBy {
    /// The plugin, over the model's arguments.
    #[default]
    Plugin,
    Host,
}

impl PromptBy {
    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Host => "host",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_to_ask_has_its_own_fingerprint() {
        let need = |who: &str| Need { who: Arc::new([who.parse().unwrap()]), quorum: 1, escalate: None };
        let asked = [
            Asked::default(),
            Asked { by: Some("a".into()), ..Asked::default() },
            Asked { by: Some("a, b".into()), ..Asked::default() },
            Asked { by: Some("a".into()), reason: Some("over 1000".into()), ..Asked::default() },
            Asked { by: Some("a".into()), reason: Some("in production".into()), ..Asked::default() },
            Asked { by: Some("a".into()), risk: Some(Risk::High), ..Asked::default() },
            Asked { by: Some("a".into()), risk: Some(Risk::Critical), ..Asked::default() },
            Asked { by: Some("a".into()), needs: Arc::new([need("group:x")]), ..Asked::default() },
            Asked { by: Some("a".into()), needs: Arc::new([need("group:y")]), ..Asked::default() },
            Asked { by: Some("a".into()), needs: Arc::new([need("group:x"), need("group:y")]), ..Asked::default() },
        ];
        let fingerprints: std::collections::HashSet<_> = asked.iter().map(Asked::fingerprint).collect();
        assert_eq!(fingerprints.len(), asked.len());
    }
}
