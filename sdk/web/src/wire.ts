/**
 * The public JSON under the names that this package uses. The types are generated from the host's OpenAPI document, which
 * describes their members. The types written here are not in the document.
 */
import type { components } from "./generated/api.js";

type Schemas = components["schemas"];

/** The damage that a wrong call could do. */
export type Risk = Schemas["Risk"];
/** A number of approvals that a call needs from certain people. */
export type Need = Schemas["Need"];
/** One principal's approval of a suspension that needs several. */
export type Vote = Schemas["Vote"];
/** The delegation of one principal's decision to another. */
export type Delegation = Schemas["Delegation"];
/** The rights of the principal who reads the suspension. */
export type You = Schemas["You"];
/** The limits of a standing approval. */
export type StandingLimits = Schemas["StandingBounds"];
/** The delivery of one webhook message. */
export type Delivery = Schemas["Delivery"];
/** How a suspension ended. */
export type Closed = Schemas["Closed"];
/** A suspension: an approval, a question or a client call, open or closed. */
export type Suspension = Schemas["Suspension"];
/** A request that a kill of the host left in doubt. Its text is untrusted: show it with `shownLines`. */
export type RequestInDoubt = Schemas["RequestInDoubt"];
/** The kind of a suspension. */
export type Kind = Schemas["Kind"];
/** Which arguments an answer may change. */
export type Editable = Schemas["Editable"];
/** The schema's defaults for what an edit of the arguments leaves out. */
export type EditDefaults = Schemas["EditDefaults"];
/** An error at one place of a request body. */
export type Pointed = Schemas["Pointed"];
/** Why a request failed (RFC 9457). */
export type Problem = Schemas["Problem"];
/** A client's report of the progress of a call. */
export type ProgressReport = Schemas["ReportProgress"];
/** Whether a report of progress was sent. */
export type ProgressReported = Schemas["ProgressReported"];
/** A turn with its calls. */
export type Turn = Schemas["Turn"];
/** The call of a plugin that submitted a nested turn. */
export type Parent = Schemas["Parent"];
/** A nested turn of a durable call. */
export type Nested = Schemas["Nested"];
/** The log of a call: the last lines of each run. */
export type CallLog = Schemas["CallLog"];
/** The log of one run of a call. */
export type RunLog = Schemas["RunLog"];
/** A line of a log. Its message is untrusted text: show it with `shownLines`. */
export type LogLine = Schemas["LogLine"];
/** A page of the journal of a durable call: the host functions that it called, without their values. */
export type CallJournal = Schemas["CallJournal"];
/** A host function that a durable call called. */
export type JournalEntry = Schemas["JournalEntry"];
/** A step of a durable call in short. Its prompt is already escaped. */
export type StepSummary = Schemas["StepSummary"];
/** The level of a line of a log. */
export type LogLevel = Schemas["Level"];
/** A suspension that cannot be shown, because a stored record is damaged. */
export type UnreadableSuspension = Schemas["UnreadableSuspension"];
/** A turn to submit. */
export type Submit = Schemas["Submit"];
/** A page of the turns of a conversation, newest first. */
export type TurnPage = Schemas["TurnPage"];
/** A turn in a list, without arguments and results. */
export type TurnSummary = Schemas["TurnSummary"];
/** Whether a turn is open, or how it ended. */
export type TurnState = TurnSummary["state"];
/** A live tool. */
export type Tool = Schemas["Tool"];
/** A page of suspensions. */
export type PendingPage = Schemas["PendingPage"];
/** The number of suspensions. `complete` is false if the host stopped counting. */
export type PendingCounts = Schemas["PendingCounts"];
/** A standing approval to give along with an approval. */
export type StandingRequest = Schemas["StandingTerms"];
/**
 * An answer. The host takes the principal from the connection. Edited `arguments` and `data` that are a `RawJson` are sent
 * as they were written.
 */
export type Answer = Schemas["Resolve"];
/** An answer to a call. `number` says which suspension of the call is answered: the first, if it is absent. */
export type CallAnswer = Schemas["ResolveCall"];
/** An accepted answer. `state` is `open` if more approvals are needed. */
export type Answered = Schemas["Resolved"];
/** The result of one answer of a batch: `ok` or `problem`. */
export type BatchAnswered = Schemas["ResolvedOne"];
/** A standing approval in the list. */
export type StandingApproval = Schemas["StandingApproval"];
/** A session. */
export type Session = Schemas["Session"];
/** The session of a one-time link beside a log-in: for one suspension, with its own principal. */
export type LinkSession = Schemas["LinkSession"];
/** The end of a suspension. `edited` is absent while the host has not said it. */
export type PendingClosed = Omit<Schemas["PendingClosed"], "edited"> &
  Partial<Pick<Schemas["PendingClosed"], "edited">>;

/** A filter for suspensions. */
export interface PendingFilter {
  /** Only those of this conversation and of its nested turns. */
  conversation?: string;
  /** Only those of turns that this principal submitted. */
  caller?: string;
  /** Only those of this tool. */
  tool?: string;
  /** Only those of this kind. */
  kind?: Kind;
  /** Only those of the call with this id. It needs `conversation`. */
  call?: string;
  /** Only those that this principal may answer now. */
  mine?: boolean;
}

/** A filter for one page of suspensions, which may have ended. */
export interface PendingQuery extends PendingFilter {
  /** If absent: `closed` with `decision` or `by`, otherwise `open`. */
  state?: "open" | "closed" | "all";
  /** Only those that ended so: `approve`, `deny` or another decision, `expired` or `withdrawn`. */
  decision?: string;
  /** Only those that this principal ended, or gave one of the approvals that ended it. */
  by?: string;
  /** Only those of this turn. */
  turn?: string;
  /** Which come first. If absent: `oldest`. */
  order?: "oldest" | "newest";
  /** The `next` of the previous page. A page may be empty and still have a next one. */
  after?: string;
  /** The size of the page: 1 to 500. */
  limit?: number;
}

/** An event of a conversation or of the host. `event` determines the other members. */
export interface FeedEvent {
  /** The name of the event. */
  event: Schemas["EventName"];
  /** When it happened. Absent for events that are not stored. */
  at?: string | null;
  /** True if the event is repeated for a client that has just attached. */
  snapshot?: boolean | null;
  /** The id of its turn. */
  turn?: string;
  /** The id of its call. */
  call?: string;
  /** The id of its suspension. */
  suspension?: string;
  /** The other members, by the name of the event. */
  [member: string]: unknown;
}
