/** The face of the package: one object for one host, with a method for what pages and programs do most. */
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
  FeedEvent,
  PendingCounts,
  PendingFilter,
  PendingPage,
  Session,
  StandingApproval,
  Submit,
  Suspension,
  Turn,
} from "./wire.js";

export type ToolgateOptions = ConnectionOptions;

/** How to follow events. */
export interface FollowOptions
  extends Pick<StreamOptions, "lastEventId" | "onStatus" | "silenceMs" | "whileHidden"> {
  signal: AbortSignal;
  /** `now`: nothing of what happened before. */
  after?: string;
  /** Instead of `JSON.parse`: for whoever shows numbers exactly as they were written. */
  parse?: (text: string) => unknown;
}

export class Toolgate {
  /**
   * Every door of the host, typed by its OpenAPI document. As is usual for openapi-fetch, it returns `{data, error}`;
   * `ToolgateError.from(error)` makes the one of the other.
   */
  readonly api: Client<paths>;
  /** The time that everything made from this client goes by. */
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

  /** Signs in with a token: the host answers with a cookie that no script can read. For pages of the host's own origin. */
  async signIn(token: string): Promise<Session> {
    return this.#signedIn(await this.connection.json<Session>("POST", "/v1/session", { body: { token } }));
  }

  /** Signs in with a one-time link, for the one suspension that it is good for. The link is used up. */
  async signInWithLink(link: string): Promise<Session> {
    return this.#signedIn(
      await this.connection.json<Session>("POST", "/v1/session/link", { body: { link } }),
    );
  }

  /** Who is signed in. */
  async session(signal?: AbortSignal): Promise<Session> {
    return this.#signedIn(await this.connection.json<Session>("GET", "/v1/session", signal && { signal }));
  }

  /** Ends the session. One that has ended already, here or by its time, is no error. */
  async signOut(): Promise<void> {
    try {
      await this.connection.json("DELETE", "/v1/session");
    } catch (error) {
      if (!(error instanceof ToolgateError) || error.status !== 401) throw error;
    }
    this.connection.remember(undefined);
  }

  /** One page of what waits, oldest first. */
  pending(
    filter: PendingFilter & { after?: string; limit?: number } = {},
    signal?: AbortSignal,
  ): Promise<PendingPage> {
    return this.connection.json("GET", "/v1/pending", { query: { ...filter }, ...(signal && { signal }) });
  }

  /** How many wait. */
  counts(filter: PendingFilter = {}, signal?: AbortSignal): Promise<PendingCounts> {
    return this.connection.json("GET", "/v1/pending/counts", {
      query: { ...filter },
      ...(signal && { signal }),
    });
  }

  /** What waits, kept up to date; see `PendingStore`. */
  pendingStore(options: PendingStoreOptions = {}): PendingStore {
    return new PendingStore(this, options);
  }

  suspension(id: string, signal?: AbortSignal): Promise<Suspension> {
    return this.connection.json("GET", path`/v1/suspensions/${id}`, signal && { signal });
  }

  /** Answers. When this returns, the answer is on disk. The same answer again is `replayed` and changes nothing. */
  resolve(suspension: string, answer: Answer, signal?: AbortSignal): Promise<Answered> {
    const call = { body: answer, ...(signal && { signal }) };
    return this.connection.json("POST", path`/v1/suspensions/${suspension}/resolve`, call);
  }

  /** Answers up to 100 suspensions, each by itself and in this order. */
  async resolveAll(answers: readonly (Answer & { suspension: string })[]): Promise<BatchAnswered[]> {
    const body = { answers };
    const answered = await this.connection.json<{ answers: BatchAnswered[] }>("POST", "/v1/pending/resolve", {
      body,
    });
    return answered.answers;
  }

  /** Hands one's say on a suspension to somebody who has none yet. */
  async delegate(suspension: string, to: string, comment?: string): Promise<void> {
    const body = { to, comment };
    await this.connection.json("POST", path`/v1/suspensions/${suspension}/delegate`, { body });
  }

  /** Every standing approval that this principal may see, those that no longer count included. */
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

  /** Takes a standing approval back; returns it as it is then. */
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

  turn(
    conversation: string,
    turn: string,
    options: { waitMs?: number; signal?: AbortSignal } = {},
  ): Promise<Turn> {
    return this.connection.json("GET", path`/v1/conversations/${conversation}/turns/${turn}`, {
      query: { wait_ms: options.waitMs },
      ...(options.signal && { signal: options.signal }),
    });
  }

  cancel(conversation: string, turn: string): Promise<Turn> {
    return this.connection.json("POST", path`/v1/conversations/${conversation}/turns/${turn}/cancel`);
  }

  /** What happens in a conversation, from its first event or after a given one, without gap or duplicate. */
  events(conversation: string, options: FollowOptions): AsyncGenerator<FeedEvent, void, undefined> {
    return this.#feed(path`/v1/conversations/${conversation}/events`, options);
  }

  /** What becomes of the host's plugins. */
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
