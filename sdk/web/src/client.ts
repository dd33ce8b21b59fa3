/** The client: one object for each host, with a method for each common task. */
import createClient, { type Client } from "openapi-fetch";
import { type ClientTools, type ClientToolsOptions, clientTools } from "./client-tools.js";
import type { Clock } from "./clock.js";
import { Connection, type ConnectionOptions, path } from "./connection.js";
import type { paths } from "./generated/api.js";
import { PendingStore, type PendingStoreOptions } from "./pending-store.js";
import { ToolgateError } from "./problem.js";
import { follow, type StreamOptions } from "./stream.js";
import type {
  Answer,
  Answered,
  BatchAnswered,
  CallAnswer,
  CallLog,
  FeedEvent,
  PendingCounts,
  PendingFilter,
  PendingPage,
  PendingQuery,
  ProgressReport,
  ProgressReported,
  Session,
  StandingApproval,
  Submit,
  Suspension,
  Turn,
  TurnPage,
  TurnState,
} from "./wire.js";

export type ToolgateOptions = ConnectionOptions;

/** How to follow events. */
export interface FollowOptions
  extends Pick<StreamOptions, "lastEventId" | "onStatus" | "silenceMs" | "whileHidden"> {
  signal: AbortSignal;
  /** `now` skips all earlier events. */
  after?: string;
  /** Replaces `JSON.parse`, for pages that show numbers exactly as they were written. */
  parse?: (text: string) => unknown;
}

export class Toolgate {
  /**
   * Every endpoint of the host, typed by its OpenAPI document. Methods return `{data, error}`, as in openapi-fetch.
   * `ToolgateError.from(error)` makes an exception from `error`.
   */
  readonly api: Client<paths>;
  /** The clock of everything that this client makes. */
  readonly clock: Clock;
  readonly connection: Connection;

  constructor(options: ToolgateOptions = {}) {
    this.connection = new Connection(options);
    this.clock = this.connection.clock;
    this.api = createClient<paths>({
      baseUrl: this.connection.url,
      fetch: (request) => this.connection.send(request),
    });
  }

  /** Logs in with a token. The host sets a cookie that scripts cannot read. For pages of the host's own origin. */
  async signIn(token: string): Promise<Session> {
    return this.#signedIn(await this.connection.json<Session>("POST", "/v1/session", { body: { token } }));
  }

  /** Logs in with a one-time link, which is valid once and for one suspension. */
  async signInWithLink(link: string): Promise<Session> {
    return this.#signedIn(
      await this.connection.json<Session>("POST", "/v1/session/link", { body: { link } }),
    );
  }

  /** The current session. */
  async session(signal?: AbortSignal): Promise<Session> {
    return this.#signedIn(await this.connection.json<Session>("GET", "/v1/session", signal && { signal }));
  }

  /** Ends the session. It is no error if the session has already ended. */
  async signOut(): Promise<void> {
    try {
      await this.connection.json("DELETE", "/v1/session");
    } catch (error) {
      if (!(error instanceof ToolgateError) || error.status !== 401) throw error;
    }
    this.connection.remember(undefined);
  }

  /** One page of suspensions, oldest first: the open ones, unless the filter says otherwise. */
  pending(filter: PendingQuery = {}, signal?: AbortSignal): Promise<PendingPage> {
    return this.connection.json("GET", "/v1/pending", { query: { ...filter }, ...(signal && { signal }) });
  }

  /** The number of open suspensions. */
  counts(filter: Omit<PendingFilter, "call"> = {}, signal?: AbortSignal): Promise<PendingCounts> {
    return this.connection.json("GET", "/v1/pending/counts", {
      query: { ...filter },
      ...(signal && { signal }),
    });
  }

  /** The open suspensions, kept up to date; see `PendingStore`. */
  pendingStore(options: PendingStoreOptions = {}): PendingStore {
    return new PendingStore(this, options);
  }

  suspension(id: string, signal?: AbortSignal): Promise<Suspension> {
    return this.connection.json("GET", path`/v1/suspensions/${id}`, signal && { signal });
  }

  /** Answers a suspension. The answer is on disk when this returns. A repeated answer is `replayed` and changes nothing. */
  resolve(suspension: string, answer: Answer, signal?: AbortSignal): Promise<Answered> {
    const call = { body: answer, ...(signal && { signal }) };
    return this.connection.json("POST", path`/v1/suspensions/${suspension}/resolve`, call);
  }

  /** Answers a call by the ids that the caller chose. An answer that is sent again never reaches a later suspension. */
  resolveCall(
    conversation: string,
    call: string,
    answer: CallAnswer,
    signal?: AbortSignal,
  ): Promise<Answered> {
    return this.connection.json("POST", path`/v1/conversations/${conversation}/calls/${call}/resolve`, {
      body: answer,
      ...(signal && { signal }),
    });
  }

  /**
   * Reports the progress of a call of a streaming tool that this client carries out. Those who follow the conversation get
   * `call.progress`. `dropped` says that earlier reports used up the operator's limits.
   */
  progress(suspension: string, report: ProgressReport, signal?: AbortSignal): Promise<ProgressReported> {
    const call = { body: report, ...(signal && { signal }) };
    return this.connection.json("POST", path`/v1/suspensions/${suspension}/progress`, call);
  }

  /** Answers up to 100 suspensions in this order. Each answer succeeds or fails on its own. */
  async resolveAll(answers: readonly (Answer & { suspension: string })[]): Promise<BatchAnswered[]> {
    const body = { answers };
    const answered = await this.connection.json<{ answers: BatchAnswered[] }>("POST", "/v1/pending/resolve", {
      body,
    });
    return answered.answers;
  }

  /** Delegates the decision to a principal who may not decide yet. */
  async delegate(suspension: string, to: string, comment?: string): Promise<void> {
    const body = { to, comment };
    await this.connection.json("POST", path`/v1/suspensions/${suspension}/delegate`, { body });
  }

  /** Every standing approval that this principal may see, including used, expired and revoked ones. */
  async standingApprovals(signal?: AbortSignal): Promise<StandingApproval[]> {
    const found: StandingApproval[] = [];
    let after: string | undefined;
    do {
      const page = await this.connection.json<{
        standing_approvals: StandingApproval[];
        next?: string | null;
      }>("GET", "/v1/standing-approvals", { query: { after }, ...(signal && { signal }) });
      found.push(...page.standing_approvals);
      after = page.next ?? undefined;
    } while (after !== undefined);
    return found;
  }

  /** Revokes a standing approval and returns its new state. */
  revokeStandingApproval(id: string): Promise<StandingApproval> {
    return this.connection.json("DELETE", path`/v1/standing-approvals/${id}`);
  }

  /** Submits a turn. The same call ids with the same content give the recorded turn. */
  submit(
    conversation: string,
    turn: Submit,
    options: { waitMs?: number; signal?: AbortSignal } = {},
  ): Promise<Turn> {
    return this.connection.json("POST", path`/v1/conversations/${conversation}/turns`, {
      body: turn,
      query: { wait_ms: options.waitMs },
      ...(options.signal && { signal: options.signal }),
    });
  }

  /** One page of the turns of a conversation, newest first. `after` is the `next` of the previous page. */
  turns(
    conversation: string,
    filter: { state?: TurnState; after?: number; limit?: number } = {},
    signal?: AbortSignal,
  ): Promise<TurnPage> {
    return this.connection.json("GET", path`/v1/conversations/${conversation}/turns`, {
      query: { ...filter },
      ...(signal && { signal }),
    });
  }

  /** Reads a turn. With `log`, its calls have the last lines of their logs. */
  turn(
    conversation: string,
    turn: string,
    options: { waitMs?: number; log?: boolean; signal?: AbortSignal } = {},
  ): Promise<Turn> {
    return this.connection.json("GET", path`/v1/conversations/${conversation}/turns/${turn}`, {
      query: { wait_ms: options.waitMs, log: options.log },
      ...(options.signal && { signal: options.signal }),
    });
  }

  /** The log of a call: the last lines of each run. While the call runs, `call.log` events have the newest ones. */
  callLog(conversation: string, call: string, signal?: AbortSignal): Promise<CallLog> {
    return this.connection.json(
      "GET",
      path`/v1/conversations/${conversation}/calls/${call}/log`,
      signal && { signal },
    );
  }

  cancel(conversation: string, turn: string): Promise<Turn> {
    return this.connection.json("POST", path`/v1/conversations/${conversation}/turns/${turn}/cancel`);
  }

  /** The events of a conversation, from the first or after a given one, without gaps or duplicates. */
  events(conversation: string, options: FollowOptions): AsyncGenerator<FeedEvent, void, undefined> {
    return this.#feed(path`/v1/conversations/${conversation}/events`, options);
  }

  /** `turn.settled` of each turn that the principal may see, and for admins the events of the host's plugins. */
  hostEvents(options: FollowOptions): AsyncGenerator<FeedEvent, void, undefined> {
    return this.#feed("/v1/events", options);
  }

  /** Carries out tools on this page; see `ClientTools`. */
  clientTools(options: ClientToolsOptions): ClientTools {
    return clientTools(this, options);
  }

  async *#feed(place: string, options: FollowOptions): AsyncGenerator<FeedEvent, void, undefined> {
    const { after, parse = JSON.parse, ...rest } = options;
    const stream = follow(this.connection, place, { ...rest, resume: true, query: { after } });
    for await (const message of stream) yield parse(message.data) as FeedEvent;
  }

  #signedIn(session: Session): Session {
    this.connection.remember(session);
    return session;
  }
}
