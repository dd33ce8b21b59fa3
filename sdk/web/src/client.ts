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
  CallJournal,
  CallLog,
  EditDefaults,
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

/** How to reach the host: `url`, `token`, `fetch` and `clock`, each of which has a default. */
export type ToolgateOptions = ConnectionOptions;

/** How to follow events. */
export interface FollowOptions
  extends Pick<StreamOptions, "lastEventId" | "onStatus" | "silenceMs" | "whileHidden"> {
  /** Ends the events. */
  signal: AbortSignal;
  /** `now` skips all earlier events. */
  after?: string;
  /** Replaces `JSON.parse`, for pages that show numbers exactly as they were written. */
  parse?: (text: string) => unknown;
}

/**
 * The client of one host. Each method that asks the host throws `ToolgateError` if the request fails: with `unauthorized`,
 * `not-allowed`, `busy`, `bad-request`, `fault`, `store-failed` or `no-space` from the host, with `unreachable` or `not-toolgate`, and
 * with the codes that the method names.
 */
export class Toolgate {
  /**
   * Every endpoint of the host, typed by its OpenAPI document. Methods return `{data, error}`, as in openapi-fetch.
   * `ToolgateError.from(error)` makes an exception from `error`.
   */
  readonly api: Client<paths>;
  /** The clock of everything that this client makes. */
  readonly clock: Clock;
  /** The connection, for requests that have no method: `connection.json(method, path, { body, query, signal })`. */
  readonly connection: Connection;

  /**
   * Makes a client. It sends nothing yet.
   * @throws `TypeError` if the address of the host is not of `http` or `https`.
   */
  constructor(options: ToolgateOptions = {}) {
    this.connection = new Connection(options);
    this.clock = this.connection.clock;
    this.api = createClient<paths>({
      baseUrl: this.connection.url,
      fetch: (request) => this.connection.send(request),
    });
  }

  /**
   * Logs in with a token. The host sets a cookie that scripts cannot read. For pages of the host's own origin.
   * @throws `unauthorized` if the host does not know the token; `busy` after too many wrong attempts.
   */
  async signIn(token: string): Promise<Session> {
    return this.#signedIn(await this.connection.json<Session>("POST", "/v1/session", { body: { token } }));
  }

  /**
   * Logs in with a one-time link, which is valid once and for one suspension.
   * @throws `unauthorized` if the link is invalid or has already been used.
   */
  async signInWithLink(link: string): Promise<Session> {
    return this.#signedIn(
      await this.connection.json<Session>("POST", "/v1/session/link", { body: { link } }),
    );
  }

  /**
   * The current session.
   * @throws `unauthorized` if nobody is logged in.
   */
  async session(signal?: AbortSignal): Promise<Session> {
    return this.#signedIn(await this.connection.json<Session>("GET", "/v1/session", signal && { signal }));
  }

  /**
   * Ends the session. It is no error if the session has already ended.
   * @throws `not-allowed` if a page of another site sent the request.
   */
  async signOut(): Promise<void> {
    try {
      await this.connection.json("DELETE", "/v1/session");
    } catch (error) {
      if (!(error instanceof ToolgateError) || error.status !== 401) throw error;
    }
    this.connection.remember(undefined);
  }

  /**
   * One page of suspensions, oldest first: the open ones, unless the filter says otherwise.
   * @throws `bad-request` if the filter has `call` without `conversation`.
   */
  pending(filter: PendingQuery = {}, signal?: AbortSignal): Promise<PendingPage> {
    return this.connection.json("GET", "/v1/pending", { query: { ...filter }, ...(signal && { signal }) });
  }

  /**
   * The number of open suspensions.
   * @throws `bad-request` if the filter is wrong.
   */
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

  /**
   * Reads a suspension, open or closed.
   * @throws `not-found` if there is no such suspension, or the principal may not see it.
   */
  suspension(id: string, signal?: AbortSignal): Promise<Suspension> {
    return this.connection.json("GET", path`/v1/suspensions/${id}`, signal && { signal });
  }

  /**
   * Answers a suspension. The answer is on disk when this returns. A repeated answer is `replayed` and changes nothing.
   * @throws `stale` if it is no longer open, with `state`, `by` and `at` in `problem`; `digest-mismatch` if `expect_digest` is of another
   * call; `invalid` with the wrong places.
   */
  resolve(suspension: string, answer: Answer, signal?: AbortSignal): Promise<Answered> {
    const call = { body: answer, ...(signal && { signal }) };
    return this.connection.json("POST", path`/v1/suspensions/${suspension}/resolve`, call);
  }

  /**
   * The schema's defaults for what an edit of the arguments leaves out. The tool applies them, so an approver needs them first.
   * @throws `not-found` if there is no such suspension; `invalid` with the wrong places of the arguments.
   */
  editDefaults(suspension: string, edited: unknown, signal?: AbortSignal): Promise<EditDefaults> {
    const call = { body: { arguments: edited }, ...(signal && { signal }) };
    return this.connection.json("POST", path`/v1/suspensions/${suspension}/defaults`, call);
  }

  /**
   * Answers a call by the ids that the caller chose. An answer that is sent again never reaches a later suspension.
   * @throws `not-found` if there is no such call; otherwise as `resolve`.
   */
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
   * @throws `stale` if the suspension is no longer open; `invalid` with the wrong places.
   */
  progress(suspension: string, report: ProgressReport, signal?: AbortSignal): Promise<ProgressReported> {
    const call = { body: report, ...(signal && { signal }) };
    return this.connection.json("POST", path`/v1/suspensions/${suspension}/progress`, call);
  }

  /**
   * Answers up to 100 suspensions in this order. Each answer succeeds or fails on its own.
   * @throws `invalid` with the wrong places. Errors of single answers are in the result.
   */
  async resolveAll(answers: readonly (Answer & { suspension: string })[]): Promise<BatchAnswered[]> {
    const body = { answers };
    const answered = await this.connection.json<{ answers: BatchAnswered[] }>("POST", "/v1/pending/resolve", {
      body,
    });
    return answered.answers;
  }

  /**
   * Delegates the decision to a principal who may not decide yet.
   * @throws `stale` if it is no longer open; `invalid` if there is no such principal.
   */
  async delegate(suspension: string, to: string, comment?: string): Promise<void> {
    const body = { to, comment };
    await this.connection.json("POST", path`/v1/suspensions/${suspension}/delegate`, { body });
  }

  /**
   * Every standing approval that this principal may see, including used, expired and revoked ones.
   * @throws `not-allowed` if a link opened the session.
   */
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

  /**
   * Revokes a standing approval and returns its new state.
   * @throws `not-found` if there is no such standing approval, or the principal may not see it.
   */
  revokeStandingApproval(id: string): Promise<StandingApproval> {
    return this.connection.json("DELETE", path`/v1/standing-approvals/${id}`);
  }

  /**
   * Submits a turn. The same call ids with the same content give the recorded turn.
   * @throws `call-id-taken` if a call id was submitted with other content; `removed` if retention removed it; `invalid` with the wrong places;
   * `loading` while the plugins of a tool load.
   */
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

  /**
   * One page of the turns of a conversation, newest first. `after` is the `next` of the previous page.
   * @throws `not-found` if nothing was submitted to the conversation, or it belongs to somebody else.
   */
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

  /**
   * Reads a turn. With `log`, its calls have the last lines of their logs.
   * @throws `not-found` if there is no such turn; `removed` if retention removed it.
   */
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

  /**
   * The log of a call: the last lines of each run. While the call runs, `call.log` events have the newest ones.
   * @throws `not-found` if there is no such call; `removed` if retention removed it.
   */
  callLog(conversation: string, call: string, signal?: AbortSignal): Promise<CallLog> {
    return this.connection.json(
      "GET",
      path`/v1/conversations/${conversation}/calls/${call}/log`,
      signal && { signal },
    );
  }

  /**
   * A page of the journal of a durable call: the host functions that its runs called, without their values. `after` is the `next`
   * of the page before. The first page has the steps of the call.
   * @throws `not-found` if there is no such call; `removed` if retention removed it.
   */
  callJournal(
    conversation: string,
    call: string,
    options: { after?: number; limit?: number; signal?: AbortSignal } = {},
  ): Promise<CallJournal> {
    return this.connection.json("GET", path`/v1/conversations/${conversation}/calls/${call}/journal`, {
      query: { after: options.after, limit: options.limit },
      ...(options.signal && { signal: options.signal }),
    });
  }

  /**
   * Cancels a turn: each of its calls that has not ended ends `cancelled`. Returns the turn.
   * @throws `not-allowed` if the principal is neither its caller nor an admin; `not-found`; `removed`.
   */
  cancel(conversation: string, turn: string): Promise<Turn> {
    return this.connection.json("POST", path`/v1/conversations/${conversation}/turns/${turn}/cancel`);
  }

  /**
   * The events of a conversation, from the first or after a given one, without gaps or duplicates.
   * @throws `not-found` if the conversation belongs to somebody else. The stream repeats errors that may pass.
   */
  events(conversation: string, options: FollowOptions): AsyncGenerator<FeedEvent, void, undefined> {
    return this.#feed(path`/v1/conversations/${conversation}/events`, options);
  }

  /**
   * `turn.settled` of each turn that the principal may see, and for admins the events of the host's plugins.
   * @throws `not-allowed` if a link opened the session. The stream repeats errors that may pass.
   */
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
