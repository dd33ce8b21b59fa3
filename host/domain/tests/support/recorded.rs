//! A turn with the facts that were committed for it, the time, and ids in order.

use super::domain::{
    Call, ConversationId, Event, OwnerId, Refusal, Timestamp, Turn, TurnId,
    event::Rejection,
    suspension::Asked,
    turn::{Context, Input, Requested, Submission, TurnSettings},
};

/// A turn that a test decides on.
pub(crate) struct RecordedTurn {
    pub(crate) facts: Vec<Event>,
    pub(crate) turn: Turn,
    /// The time in milliseconds.
    pub(crate) now: u64,
    /// The current run of the host.
    pub(crate) owner: u128,
    pub(crate) settings: TurnSettings,
    /// The host's knowledge about the tool of a call.
    pub(crate) about: fn(&Call) -> Option<Asked>,
    minted: u128,
}

impl RecordedTurn {
    /// A turn of the caller `agent`.
    pub(crate) fn submit(calls: Vec<Requested>, rejection: Rejection) -> Result<Self, Refusal> {
        let submission = Submission {
            turn: TurnId::from_bits(1),
            conversation: ConversationId::new("talk").unwrap(),
            caller: "agent".parse().unwrap(),
            rejection,
            context: None,
            parent: None,
            calls,
        };
        let (settings, mut minted) = (TurnSettings::default(), 0);
        let mut mint = || {
            minted += 1;
            minted
        };
        let now = Timestamp::from_millis(0);
        let mut cx =
            Context { now, owner: OwnerId::from_bits(1), settings: &settings, mint: &mut mint, about: &|_| None };
        let (facts, turn) = Turn::submit(submission, &mut cx)?;
        assert_eq!(Turn::replay(&facts).as_ref(), Some(&turn), "the facts make the turn");
        Ok(Self { facts, turn, now: 0, owner: 1, settings, minted, about: |_| None })
    }

    /// Decides and commits, or refuses.
    pub(crate) fn decide(&mut self, input: Input) -> Result<(), Refusal> {
        let mut mint = || {
            self.minted += 1;
            self.minted
        };
        let now = Timestamp::from_millis(self.now);
        let (owner, settings, about) = (OwnerId::from_bits(self.owner), &self.settings, self.about);
        let mut cx = Context { now, owner, settings, mint: &mut mint, about: &about };
        let (events, next) = self.turn.decide(input, &mut cx)?;
        events.iter().for_each(|event| self.turn.apply(event));
        assert_eq!(self.turn, next, "the facts make the turn");
        self.facts.extend(events);
        Ok(())
    }
}
