/**
 * The public JSON under the names that this package uses. Most types are generated from the host's OpenAPI document. The types
 * written here are missing there, or are there in a form that TypeScript cannot use.
 */
import type { components } from "./generated/api.js";

type Schemas = components["schemas"];

/** The risk of the call, as the rule or the plugin states it. */
export type Risk = "low" | "medium" | "high" | "critical";

/** A group of approvers and the number of their approvals. */
export interface Need {
  /** `principal:…`, `group:…` or `role:…`; empty: any principal with the role approver. */
  who: string[];
  /** The number of different principals who must approve. */
  quorum: number;
  /** The number of approvals. */
  votes: number;
  /** The time from which others may approve as well. */
  escalates_at?: string | null;
  /** Whether that time has passed. */
  escalated: boolean;
  /** The additional approvers. */
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
  /** Those arguments as escaped JSON text, equal to the exact ones. A vote for the same edit sends this text. */
  display?: string | null;
  /** A digest of the approved call. Only votes with the same binding count together. */
  binding: string;
}

/** The delegation of one principal's decision to another. */
export interface Delegation {
  from: string;
  to: string;
  /** `link`, where a one-time link was used. */
  via?: string | null;
  at: string;
  comment?: string | null;
}

/** The rights of the principal who reads the suspension. */
export interface You {
  may_answer: boolean;
  why_not?: string | null;
  voted: boolean;
  /** The `binding` of that vote. A vote with another binding replaces it. */
  binding?: string | null;
  /** Whether a repeated vote would count for more. Absent from older hosts. */
  counts_again?: boolean;
}

/** The limits of a standing approval. */
export interface StandingLimits {
  max_ttl_ms: number;
  max_uses: number;
}

/** The delivery of one webhook message. */
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
  /** Why the rule or policy asks. */
  reason?: string | null;
  risk?: Risk | null;
  /** The rule or policy that asks; absent if the tool declares it. */
  asked_by?: string | null;
  /** The author of the prompt. */
  prompt_by?: "plugin" | "host";
  /** SHA-256 over the exact text of the arguments. */
  arguments_digest?: string;
  /** The tool's name for people. */
  title?: string | null;
  /** All groups that must approve; empty: one approver. */
  needs?: Need[];
  votes?: Vote[];
  delegations?: Delegation[];
  you?: You | null;
  standing?: StandingLimits | null;
  deliveries?: Delivery[] | null;
}

/** How a suspension ended. */
export type Closed = Schemas["Closed"] & { arguments_digest?: string | null };

interface Approved {
  closed?: Closed | null;
  display?: (Schemas["Display"] & { approved_arguments?: string | null }) | null;
}

/** A suspension: an approval, a question or a client call, open or closed. */
export type Suspension = Omit<Schemas["Suspension"], keyof People | keyof Approved> & People & Approved;
/** The kind of a suspension. */
export type Kind = Schemas["Kind"];
/** Which arguments an answer may change. */
export type Editable = Schemas["Editable"];
/** An error at one place of a request body. */
export type Pointed = Schemas["Pointed"];
/** Why a request failed (RFC 9457). */
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

/** A filter for suspensions. */
export interface PendingFilter {
  conversation?: string;
  caller?: string;
  tool?: string;
  kind?: Kind;
  /** Only those that this principal may answer now. */
  mine?: boolean;
}

/** The number of suspensions. `complete` is false if the host stopped counting. */
export interface PendingCounts {
  open: number;
  by_kind: Record<Kind, number>;
  complete: boolean;
}

/** A standing approval to give along with an approval. */
export interface StandingRequest {
  ttl_ms: number;
  uses: number;
  /** The arguments that must be the same: all, or those at these JSON Pointers. */
  pin: "all" | string[];
}

/** An answer. The host takes the principal from the connection. */
export interface Answer {
  decision: string;
  data?: unknown;
  /** Edited arguments to approve instead of the submitted ones. A `RawJson` is sent as it was written. */
  arguments?: unknown;
  comment?: string;
  /** The `digest` of the suspension that was shown. The host refuses the answer if it differs. */
  expect_digest?: string;
  standing?: StandingRequest;
}

/** An accepted answer. `state` is `open` if more approvals are needed. */
export interface Answered {
  ok: boolean;
  replayed: boolean;
  suspension: string;
  state?: string;
  votes_missing?: number;
}

/** The result of one answer of a batch: `ok` or `problem`. */
export interface BatchAnswered {
  suspension: string;
  status: number;
  ok?: Answered | null;
  problem?: Problem | null;
}

/** A standing approval in the list. */
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

/** A session. */
export interface Session {
  principal: string;
  roles: string[];
  groups: string[];
  /** The CSRF token, sent with every request that changes something. Absent with a bearer token. */
  csrf?: string | null;
  /** The only suspension that a one-time link opens, and its conversation. */
  only?: string | null;
  conversation?: string | null;
  /** When the session expires. */
  expires_at?: string | null;
  /** The session of a one-time link in the same browser. */
  link?: LinkSession | null;
}

/** The session of a one-time link beside a log-in: for one suspension, with its own principal. */
export interface LinkSession {
  principal: string;
  only: string;
  /** The CSRF token, sent with every request of this principal. */
  csrf: string;
  expires_at: string;
}

/** An event of a conversation or of the host. `event` determines the other members. */
export interface FeedEvent {
  event: string;
  at?: string | null;
  /** True if the event is repeated for a client that has just attached. */
  snapshot?: boolean | null;
  turn?: string;
  call?: string;
  suspension?: string;
  [member: string]: unknown;
}

/** The end of a suspension. */
export interface PendingClosed {
  suspension: string;
  conversation: string;
  state: string;
  by: string;
  /** `link`, where a one-time link was used. */
  via?: string | null;
  at: string;
  /** Whether an approver edited the arguments. Absent where the host does not say. */
  edited?: boolean;
}
