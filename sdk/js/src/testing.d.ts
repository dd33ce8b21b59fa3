import type { Answer, Sent } from "./http.js";
import type { Json, Level, Plugin, Scope } from "./index.js";

/** What surrounds a call of a test. */
export interface Attempt {
  id?: string;
  idempotencyKey?: string;
  attempt?: number;
  scope?: Partial<Scope>;
  /** Whether the host asks the call to come to its end: always, or from when the function says so. */
  stopRequested?: boolean | (() => boolean);
  /** What the key-value store holds; look into it afterwards, or hand it to the next call. */
  keyvalue?: Map<string, Uint8Array>;
  /** What the operator configured. */
  config?: Readonly<Record<string, string>>;
  /** Answers requests. Throw to be unreachable. */
  http?: (request: Sent) => Answer;
}

/** What a call reported on its way. */
export interface Update {
  readonly message: string;
  readonly fraction: number | undefined;
  readonly data: Json | undefined;
}

/** How a call ended. */
export type Outcome = (
  | { readonly ok: true; readonly result: Json; readonly failure?: undefined; readonly message?: undefined }
  | {
      readonly ok: false;
      readonly result?: undefined;
      readonly failure: "invalid-arguments" | "failed" | "unavailable";
      readonly message: string;
    }
) & {
  readonly progress: readonly Update[];
  readonly log: readonly { readonly level: Level; readonly message: string }[];
};

/**
 * Runs a server tool natively, without a host. Arguments and result go through JSON as they do in a component. As on a host, arguments
 * that do not fit the declared JSON Schema never reach the tool, and a result that does not fit its own is a failure.
 * @throws When the plugin runs no tool of this name: that is the test's fault, and no outcome.
 */
export function run(plugin: Plugin, tool: string, args?: unknown, attempt?: Attempt): Promise<Outcome>;

/** A tool as the host gets it. */
export interface Declaration {
  readonly name: string;
  readonly description: string;
  readonly parameters: { readonly [keyword: string]: Json };
  readonly executor: "server" | "client" | "human" | "provider";
  readonly approval: "auto" | "requires-approval";
  readonly streaming: boolean;
  readonly options: { readonly [option: string]: Json };
}

/** What the plugin declares, as the host gets it. */
export function declarations(plugin: Plugin): Declaration[];
