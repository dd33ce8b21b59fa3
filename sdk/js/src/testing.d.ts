import type { Answer, Sent } from "./http.js";
import type { Json, Level, Plugin, Scope } from "./index.js";

/** The environment of a test's call. */
export interface Attempt {
  id?: string;
  idempotencyKey?: string;
  attempt?: number;
  scope?: Partial<Scope>;
  /** Whether the host asks the call to end: always, or when the function returns true. */
  stopRequested?: boolean | (() => boolean);
  /** The content of the key-value store. Inspect it afterwards, or pass it to the next call. */
  keyvalue?: Map<string, Uint8Array>;
  /** The operator's configuration. */
  config?: Readonly<Record<string, string>>;
  /** Returns the responses to requests. Throw an error to simulate an unreachable server. */
  http?: (request: Sent) => Answer;
}

/** A progress report of a call. */
export interface Update {
  readonly message: string;
  readonly fraction: number | undefined;
  readonly data: Json | undefined;
}

/** The outcome of a call. */
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
 * Runs a server tool natively, without a host. Arguments and result pass through JSON, as in a component. As on a host,
 * arguments that break the declared JSON Schema do not reach the tool, and a result that breaks its schema is a failure.
 * @throws If the plugin has no server tool with this name. This is a mistake in the test, not an outcome.
 */
export function run(plugin: Plugin, tool: string, args?: unknown, attempt?: Attempt): Promise<Outcome>;

/** A tool, in the form of the host. */
export interface Declaration {
  readonly name: string;
  readonly description: string;
  readonly parameters: { readonly [keyword: string]: Json };
  readonly executor: "server" | "client" | "human" | "provider";
  readonly approval: "auto" | "requires-approval";
  readonly streaming: boolean;
  readonly options: { readonly [option: string]: Json };
}

/** The declarations of the plugin, in the form of the host. */
export function declarations(plugin: Plugin): Declaration[];
