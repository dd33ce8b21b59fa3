//! The events of rules, policies, and approvals by several people.

use super::*;

pub(super) fn events() -> Vec<(&'static str, Vec<Event>)> {
    let (call, suspension) = (CallIndex(1), SUSPENSION);
    let of = |event| vec![Event::Call { call, event }];
    let Event::Call { event: CallEvent::Requested { id, tool, arguments, pinned, .. }, .. } = requested(1, "{}", None)
    else {
        unreachable!()
    };
    let ruled = Event::Call {
        call,
        event: CallEvent::Requested {
            id,
            tool,
            arguments,
            pinned,
            ruled_by: Some("large-payments".into()),
            origin: None,
        },
    };
    let lasting = |pin| {
        let Event::Call { call, event: CallEvent::Resolved { suspension, mut resolution, approved, by, at } } =
            resolved(Decision::Approve, true)
        else {
            unreachable!()
        };
        resolution.standing = Some(standing(pin));
        Event::Call { call, event: CallEvent::Resolved { suspension, resolution, approved, by, at } }
    };
    let asked = [PromptBy::Plugin, PromptBy::Host, PromptBy::Plugin, PromptBy::Plugin].into_iter().zip(Risk::ALL);
    let used = StandingUse { id: STANDING, by: principal("ann") };
    vec![
        ("call_requested_ruled", vec![ruled]),
        ("call_requested_origin", vec![with_origin()]),
        ("call_suspended_governed", asked.map(|(by, risk)| governed(by, risk)).collect()),
        ("call_suspended_policy_failed", vec![policy_failed()]),
        ("call_suspended_defaults", vec![with_defaults()]),
        ("call_resolved_standing", vec![lasting(Pin::All), lasting(Pin::Fields(texts(&["/to"])))]),
        ("call_approved", of(CallEvent::Covered { standing: used, approved: Digest::of("binding"), at: at(13) })),
        (
            "call_voted",
            [true, false]
                .map(|full| Event::Call {
                    call,
                    event: CallEvent::Voted { suspension, vote: Box::new(vote("ann", full)) },
                })
                .into(),
        ),
        ("suspension_delegated", of(CallEvent::Delegated { suspension, delegation: Box::new(delegation(None)) })),
        ("call_voted_by_link", of(CallEvent::Voted { suspension, vote: Box::new(by_link(vote("ann", false))) })),
        (
            "call_voted_without_needs",
            of(CallEvent::Voted { suspension, vote: Box::new(Vote { needs: Vec::new(), ..vote("ann", false) }) }),
        ),
        (
            "suspension_delegated_without_needs",
            of(CallEvent::Delegated {
                suspension,
                delegation: Box::new(Delegation { needs: Vec::new(), ..delegation(None) }),
            }),
        ),
        (
            "suspension_delegated_by_link",
            of(CallEvent::Delegated {
                suspension,
                delegation: Box::new(Delegation { link: Some(LINK), ..delegation(None) }),
            }),
        ),
    ]
    .into_iter()
    .chain(single_events())
    .chain(channels())
    .collect()
}

/// Needs that demand channels, and answers through each channel.
fn channels() -> [(&'static str, Vec<Event>); 4] {
    let (call, suspension) = (CallIndex(1), SUSPENSION);
    let each = |event: &dyn Fn(Option<Channel>, Option<LinkId>) -> CallEvent| {
        let link = |channel| Some(LINK).filter(|_| channel == Channel::Link);
        Channel::ALL.map(|channel| Event::Call { call, event: event(Some(channel), link(channel)) }).into()
    };
    let resolved = |channel, link| {
        let Event::Call { event: CallEvent::Resolved { mut resolution, approved, by, at, .. }, .. } =
            resolved(Decision::Deny, false)
        else {
            unreachable!()
        };
        (resolution.channel, resolution.link) = (channel, link);
        CallEvent::Resolved { suspension, resolution, approved, by, at }
    };
    let voted =
        |channel, link| CallEvent::Voted { suspension, vote: Box::new(Vote { channel, link, ..vote("ann", false) }) };
    let delegated = |channel, link| CallEvent::Delegated {
        suspension,
        delegation: Box::new(Delegation { channel, link, ..delegation(None) }),
    };
    let need =
        |via: &[Channel]| Need { who: Arc::new([]), quorum: 1, escalate: None, via: via.iter().copied().collect() };
    let needs = Arc::new([need(&[Channel::Console, Channel::Link]), need(&Channel::ALL), need(&[])]);
    let asked = Asked { needs, ..Asked::default() };
    [
        ("call_suspended_channels", vec![suspended(SuspensionBody::Approval(ApprovalRequest::new(asked)))]),
        ("call_resolved_channel", each(&resolved)),
        ("call_voted_channel", each(&voted)),
        ("suspension_delegated_channel", each(&delegated)),
    ]
}

fn single_events() -> [(&'static str, Vec<Event>); 5] {
    let (suspension, of) = (SUSPENSION, |event| vec![Event::Call { call: CallIndex(1), event }]);
    [
        ("call_resolved_by_link", vec![resolved_by_link()]),
        ("link_made", vec![made(None), made(Some("pager"))]),
        ("link_used", of(CallEvent::LinkUsed { suspension, link: LINK, by: principal("ann"), at: at(16) })),
        ("authority_revoked", of(CallEvent::AuthorityRevoked { suspension, principal: principal("ann"), at: at(17) })),
        ("suspension_escalated", of(CallEvent::Escalated { suspension, at: at(14) })),
    ]
}
