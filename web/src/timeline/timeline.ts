// The state of a conversation as a pure function of its events.

import type { FeedEvent, LogLevel, Need, Nested, Parent, Turn } from "@toolgate/web";
import type { Content, Executor, Receipt } from "../host/wire";
import type { LiveLine } from "./log";

/** A suspension of a call, and the actions of people on it. */
export interface Wait {
  suspension: string;
  kind: string;
  prompt?: string;
  reason?: string;
  risk?: string;
  /** The needed approvals, if the suspension says them. */
  needs: Need[];
  /** The approvals so far, one for each principal. */
  votes: CountedVote[];
  /** Its number among the steps of the code of a durable call. Absent before the call begins. */
  step?: number;
  /** The name of the signal that ends it. */
  signal?: string;
  /** The nested turn that the call waits for. */
  nested?: Nested;
  /** The arguments at the moment of asking, or the value of a step. */
  asked: unknown;
  openedAt: string;
  expiresAt: string;
  steps: Step[];
  /** How it ended; absent while it is open. */
  end?: {
    state: string;
    by: string;
    via?: string;
    at?: string;
    comment?: string;
    /** The approved arguments, if they were edited. */
    arguments?: unknown;
    data?: unknown;
  };
  /** The run of a durable call that goes on after it. */
  resumed?: { run: number; at?: string };
}

/** A vote, for the needs at these positions. Only votes with the same binding are added up. */
interface CountedVote {
  by: string;
  binding: string;
  needs: number[];
}

/** An action on an open suspension, by a person or by a timer. */
export interface Step {
  what: "voted" | "delegated" | "revoked" | "escalated";
  by: string;
  /** `link`, where a one-time link was used. */
  via?: string;
  to?: string;
  at?: string;
  comment?: string;
  /** The approved arguments, if they were edited. */
  arguments?: unknown;
  /** After a vote: the needed approvals, with the votes that are added up with this one. */
  needs?: Need[];
}

export type CallState = "requested" | "awaiting" | "running" | "settled";

export interface TimelineCall {
  id: string;
  tool: string;
  arguments: unknown;
  /** The submitted arguments, if an approver changed them. */
  submitted?: unknown;
  executor?: Executor;
  gated: boolean;
  plugin?: string;
  component?: string;
  state: CallState;
  attempt: number;
  progress?: { message: string; fraction?: number };
  /** The last lines that arrived while the call runs. The host keeps earlier ones. */
  log: LiveLine[];
  waits: Wait[];
  /** Its nested turns, oldest first. Absent in a timeline, where `waits` has them. */
  nested?: Nested[];
  /** The standing approval that approved the call. */
  standing?: string;
  outcome?: string;
  trusted?: boolean;
  content?: Content;
  receipt?: Receipt;
  settledAt?: string;
}

export interface TimelineTurn {
  id: string;
  /** Absent if the record of the turn's start is damaged. */
  caller?: string;
  startedAt?: string;
  /** The call that submitted it, if it is nested. */
  parent?: Parent;
  context?: unknown;
  state: "open" | "settled" | "aborted" | "cancelled" | "unknown";
  cancelledBy?: string;
  endedAt?: string;
  calls: TimelineCall[];
  /** The number of records that are damaged, so their events are missing. */
  unreadable: number;
}

export type Timeline = readonly TimelineTurn[];

/** Members of an event, or of a turn that was read. They have the same names. */
interface Members {
  readonly [member: string]: unknown;
}

/** The live log lines that are kept for each call. The host keeps more. */
const LOG_LINES = 200;

/** The timeline after one more event. Events of turns that began before the stream are ignored. */
export function withEvent(timeline: Timeline, event: FeedEvent): Timeline {
  const id = text(event.turn);
  if (event.event === "turn.started") return started(timeline, id, event);
  if (event.event === "record.unreadable") return damaged(timeline, id);
  return replaced(
    timeline,
    (turn) => turn.id === id,
    (turn) => turnAfter(turn, event),
  );
}

/** The calls of a turn that was read, with the suspensions that are open. */
export function callsOf({ calls, pending }: Turn): TimelineCall[] {
  return calls.map(({ id, status, attempt, nested = [], ...read }) => {
    const call: TimelineCall = {
      ...requested({ ...read, call: id }),
      state: attempt > 0 ? "running" : "requested",
      attempt,
      nested,
      ...optional(read, "submitted"),
    };
    if (status === "resolved" || status === "errored") return settled(call, read);
    const asked = pending.filter((suspension) => suspension.call === id);
    // A nested turn is shown once, also after the call has waited for it.
    return asked.map((suspension) => ({ ...suspension, nested: null })).reduce(suspended, call);
  });
}

function started(timeline: Timeline, id: string, event: FeedEvent): Timeline {
  if (timeline.some((turn) => turn.id === id)) return timeline;
  const turn: TimelineTurn = { id, caller: text(event.caller), state: "open", calls: [], unreadable: 0 };
  if (event.at) turn.startedAt = event.at;
  if (event.context !== undefined) turn.context = event.context;
  if (event.parent != null) turn.parent = event.parent as Parent;
  return [...timeline, turn];
}

/** A turn whose first record is damaged is shown where it began. */
function damaged(timeline: Timeline, id: string): Timeline {
  if (!timeline.some((turn) => turn.id === id)) {
    return [...timeline, { id, state: "unknown", calls: [], unreadable: 1 }];
  }
  return replaced(
    timeline,
    (turn) => turn.id === id,
    (turn) => ({ ...turn, unreadable: turn.unreadable + 1 }),
  );
}

function turnAfter(turn: TimelineTurn, event: FeedEvent): TimelineTurn {
  const ended = event.at ? { endedAt: event.at } : {};
  switch (event.event) {
    case "turn.settled":
      return { ...turn, ...ended, state: event.state as TimelineTurn["state"] };
    case "turn.cancelled":
      return { ...turn, cancelledBy: text(event.by) };
    case "call.requested":
      return turn.calls.some((call) => call.id === event.call)
        ? turn
        : { ...turn, calls: [...turn.calls, requested(event)] };
    default: {
      const calls = replaced(
        turn.calls,
        (call) => call.id === event.call,
        (call) => callAfter(call, event),
      );
      return calls === turn.calls ? turn : { ...turn, calls: [...calls] };
    }
  }
}

function requested(event: Members): TimelineCall {
  return {
    id: text(event.call),
    tool: text(event.tool),
    arguments: event.arguments,
    gated: event.approval === "requires-approval",
    state: "requested",
    attempt: 0,
    log: [],
    waits: [],
    ...optional(event, "executor", "plugin", "component"),
  };
}

function callAfter(call: TimelineCall, event: FeedEvent): TimelineCall {
  switch (event.event) {
    case "call.suspended":
      return suspended(call, event);
    case "call.resolved":
      return resolved(call, event);
    case "call.approved":
      return { ...call, standing: text(event.standing) };
    case "call.started":
      return { ...call, state: "running", attempt: Number(event.attempt) };
    case "call.resumed":
      return resumed(call, event);
    case "call.progress":
      return { ...call, progress: progress(event) };
    case "call.log":
      return {
        ...call,
        log: [...call.log, logLine(event)].slice(-LOG_LINES),
      };
    case "call.settled":
      return settled(call, event);
    default:
      return waitAfter(call, event);
  }
}

function logLine(event: FeedEvent): LiveLine {
  const { run, line, level, message } = event;
  return { run: Number(run), line: Number(line), level: level as LogLevel, message: text(message) };
}

function progress(event: FeedEvent): NonNullable<TimelineCall["progress"]> {
  const message = text(event.message);
  // `1.0` is parsed as an `ExactNumber`.
  return event.fraction == null ? { message } : { message, fraction: Number(event.fraction) };
}

function suspended(call: TimelineCall, event: Members): TimelineCall {
  const suspension = text(event.suspension);
  if (call.waits.some((wait) => wait.suspension === suspension)) return call;
  const wait: Wait = {
    suspension,
    kind: text(event.kind),
    asked: event.step == null ? call.arguments : event.arguments,
    openedAt: text(event.created_at),
    expiresAt: text(event.expires_at),
    needs: Array.isArray(event.needs) ? event.needs : [],
    votes: [],
    steps: [],
    ...(event.step == null ? {} : { step: Number(event.step) }),
    ...optional(event, "prompt", "reason", "risk", "signal", "nested"),
  };
  return { ...call, state: "awaiting", waits: [...call.waits, wait] };
}

function resolved(call: TimelineCall, event: FeedEvent): TimelineCall {
  const state = text(event.decision);
  const end = { state, by: text(event.by), ...optional(event, "via", "at", "comment", "arguments", "data") };
  const after = ended(call, event, end);
  const wait = after.waits.find(({ suspension }) => suspension === event.suspension);
  // An approver of a step edits its value and not the arguments of the call.
  if (event.arguments === undefined || wait?.step !== undefined) return after;
  return { ...after, arguments: event.arguments, submitted: call.submitted ?? call.arguments };
}

/** The runs of a call are its attempts and the steps that have ended, as in its log. */
function resumed(call: TimelineCall, event: FeedEvent): TimelineCall {
  const attempt = Number(event.attempt);
  const isPassed = (wait: Wait) => wait.step !== undefined && wait.end !== undefined;
  const run = attempt + call.waits.filter(isPassed).length;
  const waits = replaced(call.waits, isPassed, (wait) => ({
    ...wait,
    resumed: { run, ...optional(event, "at") },
  }));
  return { ...call, state: "running", attempt, waits: [...waits] };
}

function waitAfter(call: TimelineCall, event: FeedEvent): TimelineCall {
  const by = text(event.by ?? event.from ?? "system");
  const step = (what: Step["what"], to?: string): TimelineCall => {
    const made: Step = {
      what,
      by,
      ...(to ? { to } : {}),
      ...optional(event, "via", "at", "comment", "arguments"),
    };
    return onWait(call, event, (wait) => withStep(wait, made, event));
  };
  switch (event.event) {
    case "call.voted":
      return step("voted");
    case "suspension.delegated":
      return step("delegated", text(event.to));
    case "suspension.authority_revoked":
      return step("revoked", text(event.principal));
    case "suspension.escalated":
      return step("escalated", Array.isArray(event.to) ? event.to.map(text).join(", ") : text(event.to));
    case "suspension.expired":
      return ended(call, event, { state: "expired", by: "system", ...optional(event, "at") });
    default:
      return call;
  }
}

function withStep(wait: Wait, step: Step, event: FeedEvent): Wait {
  const votes = votesAfter(wait, step, event);
  const added = votes.filter(({ binding }) => binding === event.binding);
  const needs = wait.needs.map((need, position) => ({
    ...need,
    votes: added.filter((vote) => vote.needs.includes(position)).length,
  }));
  return { ...wait, votes, steps: [...wait.steps, step.what === "voted" ? { ...step, needs } : step] };
}

/** A second vote replaces the first. With a revoked principal, the votes of its delegates end too. */
function votesAfter({ votes, steps }: Wait, step: Step, event: FeedEvent): CountedVote[] {
  if (step.what === "voted") {
    const needs = Array.isArray(event.needs) ? event.needs : [];
    return [
      ...votes.filter(({ by }) => by !== step.by),
      { by: step.by, binding: text(event.binding), needs },
    ];
  }
  if (step.what !== "revoked") return votes;
  const delegates = steps.filter(({ what, by }) => what === "delegated" && by === step.to);
  const gone = [step.to, ...delegates.map(({ to }) => to)];
  return votes.filter(({ by }) => !gone.includes(by));
}

function ended(call: TimelineCall, event: FeedEvent, end: NonNullable<Wait["end"]>): TimelineCall {
  const after = onWait(call, event, (wait) => (wait.end ? wait : { ...wait, end }));
  const waits = after.waits.some((wait) => wait.end === undefined);
  return after.state === "awaiting" && !waits ? { ...after, state: "requested" } : after;
}

function settled(call: TimelineCall, event: Members): TimelineCall {
  const { progress: _, ...kept } = call;
  const after: TimelineCall = {
    ...kept,
    state: "settled",
    ...optional(event, "outcome", "trusted", "content", "receipt"),
  };
  // An open suspension ends with its call. Newer hosts have already sent an event for it.
  after.waits = after.waits.map((wait) =>
    wait.end ? wait : { ...wait, end: { state: "withdrawn", by: "system" } },
  );
  if (event.at) after.settledAt = text(event.at);
  return after;
}

function onWait(call: TimelineCall, event: FeedEvent, change: (wait: Wait) => Wait): TimelineCall {
  const waits = replaced(call.waits, (wait) => wait.suspension === event.suspension, change);
  return waits === call.waits ? call : { ...call, waits: [...waits] };
}

/** The list with one item replaced, or the same list without a match. */
function replaced<T>(list: readonly T[], which: (item: T) => boolean, change: (item: T) => T): readonly T[] {
  const index = list.findLastIndex(which);
  const item = list[index];
  return item === undefined ? list : list.with(index, change(item));
}

function optional(event: Members, ...names: string[]): Record<string, unknown> & object {
  return Object.fromEntries(names.filter((name) => event[name] != null).map((name) => [name, event[name]]));
}

function text(value: unknown): string {
  return typeof value === "string" ? value : value == null ? "" : String(value);
}
