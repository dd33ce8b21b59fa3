//! The texts that people see with a suspension, and the question to them with its approvers.

use std::sync::{Arc, LazyLock};

use crate::{
    Digest, Json,
    approvers::Need,
    json::{self, Value},
    principal::{Channel, Channels},
    tool::Risk,
};

/// The texts that people see with a suspension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// Can contain text of the plugin and the call's arguments, so it is untrusted. A program that shows it must escape
    /// it.
    pub prompt: Option<Arc<str>>,
    pub prompt_by: PromptBy,
    /// The tool's name for people.
    pub title: Option<String>,
    /// The rule or policy that requires the question or denies the step. `None`: the tool requires the question.
    pub by: Option<Arc<str>>,
    pub reason: Option<Arc<str>>,
    pub risk: Option<Risk>,
    /// The members of the turn's context that people see with the question. `None`: all of them.
    pub context_keys: Option<Arc<[String]>>,
}

/// A question to people. Approvals and elicitations have one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    pub about: About,
    /// The schema's defaults for what the arguments leave out: a JSON object with a JSON Pointer as each name. They inform
    /// people. The call runs with the arguments as submitted.
    pub defaults: Option<Json>,
    /// An approval must meet all of these needs. For an elicitation, they list the people who can answer. Empty: any
    /// one approver.
    pub needs: Arc<[Need]>,
    /// Whether the policy failed, so that the host asks a person instead.
    pub policy_failed: bool,
}

/// The default need: any one approver.
static ANY_APPROVER: LazyLock<[Need; 1]> =
    LazyLock::new(|| [Need { who: Arc::new([]), quorum: 1, escalate: None, via: Channels::ANY }]);

impl Asked {
    /// The needs. There is at least one.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        if self.needs.is_empty() { ANY_APPROVER.as_slice() } else { &self.needs }
    }

    /// The approval fingerprint: a digest of the reasons and the needs of an approval, and of the context that people see
    /// with it. A standing approval covers only calls with the same fingerprint.
    ///
    /// The fingerprints of earlier versions did not cover the context. So their standing approvals cover no later call: nothing
    /// records which context the approver saw.
    #[must_use]
    pub fn fingerprint(&self, context: Option<&Json>) -> Digest {
        let About { by, reason, risk, .. } = &self.about;
        let risk = risk.map_or("", Risk::as_str);
        let why = [by.as_deref().unwrap_or_default(), reason.as_deref().unwrap_or_default(), risk];
        let mut parts: Vec<String> = why.into_iter().map(str::to_owned).collect();
        for need in self.needs.iter() {
            let names =
                |who: &[crate::approvers::Who]| who.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let wider = need.escalate.as_ref().map(|wider| format!("{} {}", wider.after.millis(), names(&wider.to)));
            parts.push(format!("{} {}", need.quorum, names(&need.who)));
            parts.push(wider.unwrap_or_default());
            // Without channels, it is the fingerprint of earlier versions.
            if !need.via.is_any() {
                parts.push(format!("via {}", need.via.iter().map(Channel::as_str).collect::<Vec<_>>().join(" ")));
            }
        }
        parts.push(self.about.shown(context));
        Digest::of_parts(&parts.iter().map(String::as_bytes).collect::<Vec<_>>())
    }
}

impl From<About> for Asked {
    /// A question to any one approver.
    fn from(about: About) -> Self {
        Self { about, ..Self::default() }
    }
}

impl About {
    /// The context that people see, in a form in which white space and the order of members do not matter.
    fn shown(&self, context: Option<&Json>) -> String {
        let Some(context) = context else { return String::new() };
        let value = context.value();
        let Ok(Value::Object(members)) = value.as_deref() else { return context.to_string() };
        let is_shown = |name: &str| self.context_keys.as_ref().is_none_or(|keys| keys.iter().any(|key| key == name));
        let shown = members.sorted().into_iter().filter(|(name, _)| is_shown(name));
        shown.map(|(name, value)| format!("{}:{}\n", json::quote(name), value.to_json())).collect()
    }
}

crate::names! {
    /// The author of a prompt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum PromptBy {
        /// The plugin. The prompt can contain arguments from the model.
        #[default]
        Plugin = "plugin",
        Host = "host",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_to_ask_has_its_own_fingerprint() {
        let need =
            |who: &str| Need { who: Arc::new([who.parse().unwrap()]), quorum: 1, escalate: None, via: Channels::ANY };
        let via = |who: &str, via: &[Channel]| Need { via: via.iter().copied().collect(), ..need(who) };
        let by_a = || About { by: Some("a".into()), ..About::default() };
        let of = |needs: Arc<[Need]>| Asked { needs, ..by_a().into() };
        let asked = [
            Asked::default(),
            by_a().into(),
            About { by: Some("a, b".into()), ..About::default() }.into(),
            About { reason: Some("over 1000".into()), ..by_a() }.into(),
            About { reason: Some("in production".into()), ..by_a() }.into(),
            About { risk: Some(Risk::High), ..by_a() }.into(),
            About { risk: Some(Risk::Critical), ..by_a() }.into(),
            of(Arc::new([need("group:x")])),
            of(Arc::new([need("group:y")])),
            of(Arc::new([need("group:x"), need("group:y")])),
            of(Arc::new([via("group:x", &[Channel::Console])])),
            of(Arc::new([via("group:x", &[Channel::Link])])),
            of(Arc::new([via("group:x", &[Channel::Console, Channel::Link])])),
            of(Arc::new([via("group:x", &[Channel::Console]), need("group:y")])),
            of(Arc::new([need("group:x"), via("group:y", &[Channel::Console])])),
        ];
        let fingerprints: std::collections::HashSet<_> = asked.iter().map(|asked| asked.fingerprint(None)).collect();
        assert_eq!(fingerprints.len(), asked.len());
    }

    #[test]
    fn fingerprint_without_channels_is_that_of_earlier_versions() {
        let who = Arc::new(["group:x".parse().unwrap()]);
        let needs = Arc::new([Need { who, quorum: 1, escalate: None, via: Channels::ANY }]);
        let earlier = Digest::of_parts(&[b"", b"", b"", b"1 group:x", b"", b""]);
        assert_eq!(Asked { needs, ..Asked::default() }.fingerprint(None), earlier);
    }

    #[test]
    fn fingerprint_covers_the_context_that_people_see() {
        let page = About { context_keys: Some(["page".into()].into()), ..About::default() };
        let (all, page) = (Asked::default(), Asked::from(page));
        let of = |asked: &Asked, context: &str| asked.fingerprint(Some(&Json::unchecked(context)));
        for (asked, one, other, is_same) in [
            (&all, r#"{"page":{"a":1,"b":2},"n":1}"#, r#" {"n":1, "page":{"b":2,"a":1}}"#, true),
            (&all, r#"{"page":1}"#, r#"{"page":1.0}"#, false),
            (&all, r#"{"page":1}"#, r#"{"page":1,"n":1}"#, false),
            (&all, r#"{"a":"1","b":2}"#, r#"{"a":"1\n\"b\":2"}"#, false),
            (&page, r#"{"page":1}"#, r#"{"page":1,"n":1}"#, true),
            (&page, r#"{"page":1}"#, r#"{"page":2}"#, false),
            (&page, r#"{"page":1}"#, "{}", false),
            (&page, r#"{"n":1}"#, "{}", true),
        ] {
            assert_eq!(of(asked, one) == of(asked, other), is_same, "{one} {other}");
        }
        assert_eq!(all.fingerprint(None), of(&all, "{}"), "nothing is shown");
    }

    #[test]
    fn no_call_has_a_fingerprint_of_an_older_version() {
        // They were made of these parts: the rule, its reason and the risk.
        let older = Digest::of_parts(&[b"", b"", b""]);
        for context in [None, Some(Json::unchecked("{}")), Some(Json::unchecked(r#"{"page":1}"#))] {
            assert_ne!(Asked::default().fingerprint(context.as_ref()), older);
        }
    }
}
