//! Answers to suspensions: to the one that the path names, to one of several, and to one of a call.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::{Decision, StandingTerms, Verbatim, present};

/// An answer, and the members that say what it answers. `flatten` of serde cannot do this: it would accept unknown
/// members, and it cannot read verbatim JSON.
macro_rules! answer {
    ($(#[$doc:meta])* $name:ident { $($(#[$member_doc:meta])* $member:ident: $of:ty)? }) => {
        $(#[$doc])*
        #[serde_with::skip_serializing_none]
        #[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$member_doc])* pub $member: $of,)?
            /// One of the allowed decisions.
            #[schema(value_type = String)]
            pub decision: Decision,
            /// The data of the decision.
            #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
            pub data: Option<Verbatim>,
            /// Arguments that replace the submitted ones.
            pub arguments: Option<Verbatim>,
            /// The comment of the principal.
            pub comment: Option<String>,
            /// The digest of the suspension that was shown. If it has changed, the answer is refused.
            pub expect_digest: Option<String>,
            /// With an approval: the terms of a standing approval.
            pub standing: Option<StandingTerms>,
        }

        $(impl $name {
            /// The names of what it answers, and the answer.
            pub fn split(self) -> ($of, Resolve) {
                let Self { $member, decision, data, arguments, comment, expect_digest, standing } = self;
                ($member, Resolve { decision, data, arguments, comment, expect_digest, standing })
            }
        })?
    };
}

answer! {
    /// An answer. The host knows the principal from the token or session, never from the body.
    Resolve {}
}

answer! {
    /// An answer to one of several.
    ResolveOne {
        /// The id of the suspension to answer.
        suspension: String
    }
}

answer! {
    /// An answer to a suspension of a call, which is named by its number.
    ResolveCall {
        /// The `number` of the suspension that is answered. 1 if absent, whichever suspension is open now.
        #[serde(default = "crate::suspension::first")]
        number: u32
    }
}

impl Resolve {
    /// An answer that consists of a decision.
    #[must_use]
    pub const fn new(decision: domain::suspension::Decision) -> Self {
        let decision = Decision(decision);
        Self { decision, data: None, arguments: None, comment: None, expect_digest: None, standing: None }
    }

    /// The answer to a suspension.
    ///
    /// # Errors
    /// If a member has an invalid form.
    pub fn answer(self, suspension: domain::SuspensionId) -> Result<dispatch::Answer> {
        let expect_digest = self.expect_digest.as_deref().map(str::parse::<domain::Digest>).transpose();
        Ok(dispatch::Answer {
            suspension,
            decision: self.decision.0,
            data: self.data.map(|data| data.0),
            arguments: self.arguments.map(|arguments| arguments.0),
            comment: self.comment,
            expect_digest: expect_digest.map_err(|error| Error::invalid_at("/expect_digest", error.to_string()))?,
            standing: self.standing.map(StandingTerms::terms).transpose()?,
        })
    }
}
