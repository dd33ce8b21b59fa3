/**
 * The public JSON under the names that this package uses. Most of it is generated from the host's OpenAPI document;
 * what stands here by hand is what that document does not say in a form that TypeScript can use.
 */
import type { components } from "./generated/api.js";

type Schemas = components["schemas"];

/** How much could go wrong, as the rule that asked says. */
export type Risk = "low" | "medium" | "high" | "critical";

/** Who has to approve, and how many of them have. */
export interface Need {
  /** `principal:…`, `group:…` or `role:…`; empty: whoever has the role approver. */
  who: string[];
  /** How many different principals have to approve. */
  quorum: number;
  /** How many have. */
  votes: number;
  /** When others may approve as well. */
  escalates_at?: string | null;
  /** Whether that has happened. */
  escalated: boolean;
  /** Who may then. */
  escalates_to?: string[] | null;
}

/** One principal's approval of a suspension that needs several. */
export interface Vote {
  by: string;
  /** `link`, where a one-time link was used. */
  via?: string | null;
  at: string;
  comment?: string | null;
  /** The arguments that were approved, if they were edited. */
  arguments?: unknown;
  /** Those arguments as an escaped JSON text, equal to the exact ones: what is shown, and what a vote for the same sends. */
  display?: string | null;
  /** What was approved: only votes with the same binding count together. */
  binding: string;
}

/** That somebody handed their say to somebody else. */
export interface Delegation {
  from: string;
  to: string;
  /** `link`, where a one-time link was used. */
  via?: string | null;
  at: string;
  comment?: string | null;
}

/** What the principal that asks may do. */
export interface You {
  may_answer: boolean;
  why_not?: string | null;
  voted: boolean;
  /** The `binding` of that vote. A vote for another one takes its place. */
  binding?: string | null;
  /** Whether the same approval would count for more than that vote does. Older hosts do not say. */
  counts_again?: boolean;
}

/** How far a standing approval may go, where one may be given. */
export interface StandingLimits {
  max_ttl_ms: number;
  max_uses: number;
}

/** What became of one notification. */
export interface Delivery {
  webhook: string;
  event: string;
  state: "pending" | "delivered" | "failed";
  attempts: number;
  last_status?: number | null;
  last_error?: string | null;
  at: string;
}

interface People {
  /** Why a person is asked, in the words of the rule or the policy that asks. */
  reason?: string | null;
  risk?: Risk | null;
  /** The rule or policy that asks; absent where the tool itself declares it. */
  asked_by?: string | null;
  /** Whose words the prompt is. */
  prompt_by?: "plugin" | "host";
  /** SHA-256 over the exact text of the arguments. */
  arguments_digest?: string;
  /** A name of the tool for people. */
  title?: string | null;
  /** Everybody who has to approve; empty: one approver. */
  needs?: Need[];
  votes?: Vote[];
  delegations?: Delegation[];
  you?: You | null;
  standing?: StandingLimits | null;
  deliveries?: Delivery[] | null;
}

/** One thing that a call waits for, or waited for. */
export type Suspension = Omit<Schemas["Suspension"], keyof People> & People;
/** What is waited for. */
export type Kind = Schemas["Kind"];
/** How a suspension ended. */
export type Closed = Schemas["Closed"];
/** Which arguments an answer may change. */
export type Editable = Schemas["Editable"];
/** Something that is wrong at one place of a body. */
export type Pointed = Schemas["Pointed"];
/** Why a request was not carried out (RFC 9457). */
export type Problem = Schemas["Problem"];
/** A turn with its calls. */
export type Turn = Schemas["Turn"];
/** A turn to submit. */
export type Submit = Schemas["Submit"];
/** A live tool. */
export type Tool = Schemas["Tool"];

/** A page of suspensions. */
export interface PendingPage {
  suspensions: Suspension[];
  next?: string | null;
}

/** Which suspensions. */
export interface PendingFilter {
  conversation?: string;
  caller?: string;
  tool?: string;
  kind?: Kind;
  /** Only those that this principal may answer now. */
  mine?: boolean;
}

/** How many suspensions there are. `complete` is false where the host stopped counting. */
export interface PendingCounts {
  open: number;
  by_kind: Record<Kind, number>;
  complete: boolean;
}

/** A standing approval to give along with an approval. */
export interface StandingRequest {
  ttl_ms: number;
  uses: number;
  /** Which arguments have to be the same: all of them, or those at these JSON Pointers. */
  pin: "all" | string[];
}

/** An answer. Who gives it is known from the connection alone. */
export interface Answer {
  decision: string;
  data?: unknown;
  /** Arguments to take the place of the submitted ones; a `RawJson` is sent as it is written. */
  arguments?: unknown;
  comment?: string;
  /** The `digest` of what was shown. With it, an answer to anything else is refused. */
  expect_digest?: string;
  standing?: StandingRequest;
}

/** That an answer was taken. `state` is `open` where more people have to approve. */
export interface Answered {
  ok: boolean;
  replayed: boolean;
  suspension: string;
  state?: string;
  votes_missing?: number;
}

/** What became of one of several answers: `ok` where it was taken, and `problem` where it was not. */
export interface BatchAnswered {
  suspension: string;
  status: number;
  ok?: Answered | null;
  problem?: Problem | null;
}

/** A standing approval, as it is listed. */
export interface StandingApproval {
  id: string;
  tool: string;
  plugin: string;
  component: string;
  caller: string;
  arguments: unknown;
  pin: "all" | string[];
  by: string;
  suspension: string;
  conversation?: string;
  created_at: string;
  expires_at: string;
  uses: number;
  used: number;
  revoked_by?: string | null;
  revoked_at?: string | null;
  state: "active" | "used_up" | "expired" | "revoked";
}

/** Who is signed in. */
export interface Session {
  principal: string;
  roles: string[];
  groups: string[];
  /** Goes with every request that changes something; absent where a bearer token says who asks. */
  csrf?: string | null;
  /** The one suspension that a one-time link is good for, and its conversation. */
  only?: string | null;
  conversation?: string | null;
  /** When the session ends by itself. */
  expires_at?: string | null;
  /** What a link opened beside it in the same browser. */
  link?: LinkSession | null;
}

/** The session of a one-time link beside that of a log-in: for one suspension, and in a name of its own. */
export interface LinkSession {
  principal: string;
  only: string;
  /** Goes with every request that is to be made in that name. */
  csrf: string;
  expires_at: string;
}

/** An event of a conversation or of the host. What is beside `event` depends on it. */
export interface FeedEvent {
  event: string;
  at?: string | null;
  /** True where it is told again because a client has just attached. */
  snapshot?: boolean | null;
  turn?: string;
  call?: string;
  suspension?: string;
  [member: string]: unknown;
}

/** That a suspension ended. */
export interface PendingClosed {
  suspension: string;
  conversation: string;
  state: string;
  by: string;
  /** `link`, where a one-time link was used. */
  via?: string | null;
  at: string;
}
