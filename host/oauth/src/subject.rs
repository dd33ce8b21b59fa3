//! The names of principals with an access token. They begin with [`PREFIX`], which no token of the host's own may have.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::PrincipalId;
use sha2::{Digest as _, Sha256};

/// The beginning of every name.
const PREFIX: &str = "oauth:";

/// The beginning of the digest of a subject.
const DIGEST: &str = "sha256:";

/// The bytes of the issuer's digest in a name.
const ISSUER: usize = 12;

/// Whether only holders of access tokens can have this name.
#[must_use]
pub fn is_reserved(name: &PrincipalId) -> bool {
    name.as_str().starts_with(PREFIX)
}

/// The names of the subjects of one issuer: `oauth:`, a digest of the issuer, and the subject. A subject that is no name, or that
/// looks like a digest, is replaced by its digest. So two subjects never share a name.
#[derive(Debug, Clone)]
pub struct IssuerNames(String);

impl IssuerNames {
    #[must_use]
    pub fn new(issuer: &str) -> Self {
        let digest = Sha256::digest(issuer);
        let digest = URL_SAFE_NO_PAD.encode(digest.get(..ISSUER).unwrap_or_default());
        Self(format!("{PREFIX}{digest}:"))
    }

    /// The name of a subject.
    pub(crate) fn of(&self, subject: &str) -> Option<PrincipalId> {
        let Self(beginning) = self;
        let plain = PrincipalId::new(&format!("{beginning}{subject}")).ok();
        plain.filter(|_| !subject.starts_with(DIGEST)).or_else(|| {
            let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(subject));
            PrincipalId::new(&format!("{beginning}{DIGEST}{digest}")).ok()
        })
    }

    /// Whether this is the name of a subject of this issuer.
    #[must_use]
    pub fn has(&self, name: &PrincipalId) -> bool {
        name.as_str().starts_with(&self.0)
    }
}

/// The beginning of the names.
impl fmt::Display for IssuerNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn subjects_never_share_a_name() {
        let (ours, other) = (IssuerNames::new("https://a.example"), IssuerNames::new("https://a.example/"));
        let long = "x".repeat(300);
        let digest = ours.of("two words").unwrap().as_str().rsplit_once(DIGEST).unwrap().1.to_owned();
        let imitated = format!("{DIGEST}{digest}");
        let subjects =
            ["alice", "Alice", "alice@example.com", "two words", &imitated, "ü", "u\u{308}", "a\0", &long, "admin"];
        let names: BTreeSet<PrincipalId> =
            [&ours, &other].iter().flat_map(|names| subjects.map(|subject| names.of(subject).unwrap())).collect();
        assert_eq!(names.len(), 2 * subjects.len(), "{names:?}");
        assert!(names.iter().all(is_reserved));
        assert_eq!(names.iter().filter(|name| ours.has(name)).count(), subjects.len());
        assert!(ours.of("alice").unwrap().as_str().ends_with(":alice"));
    }
}
