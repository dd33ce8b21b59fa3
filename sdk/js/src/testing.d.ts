// Native tests of a plugin, without a host or WebAssembly. They run under Node.js.

import type { Answer, Sent } from "./http.js";
import type { Json, Level, Plugin, Scope } from "./index.js";

/** The environment of a test's call. */
export interface Attempt {
  /** The id of the call. By default `call-1`. */
  id?: string;
  /** The idempotency key. By default it is made of the id. */
  idempotencyKey?: string;
  /** The number of the attempt. By default 1. */
  attempt?: number;
  /** The origin of the call. By default an invented one. */
  scope?: Partial<Scope>;
  /** Whether the host asks the call to end: always, or when the function returns true. */
  stopRequested?: boolean | (() => boolean);
  /** The content of the key-value store. Inspect it afterwards, or pass it to the next call. */
  keyvalue?: Map<string, Uint8Array>;
  /** The operator's configuration. */
  config?: Readonly<Record<string, string>>;
  /** Returns the responses to requests. Throw an error to simulate an unreachable server. */
  http?: (request: Sent) => Answer;
  /** The ends of a durable tool's waits for people, external systems and other tools, in order. Sleeps end at once and need none. */
  waits?: readonly End[];
}

declare const ends: unique symbol;

/** The end of a durable tool's wait for a person, an external system or other tools. */
export interface End {
  readonly [ends]: true;
}

/** A wait of `ask` or `choose` ends with this answer. */
export function answered(answer: unknown): End;

/** A wait of `approve` ends with an approval of this value; by default of the value as it is. */
export function approved(value?: unknown): End;

/** A wait of `awaitExternal` ends with this result. */
export function received(result: unknown): End;

/** A wait of `callTools` ends with these ends of its calls. */
export function returned(...ends: Returned[]): End;

/** A wait for a person ends with a denial and this comment. */
export function denied(comment?: string): End;

/** A wait for a person or an external system ends without an answer. */
export function expired(): End;

/** A wait of a durable tool. */
export type Wait =
  | {
      /** The function that waited. */
      readonly kind: "ask" | "approve" | "awaitExternal" | "callTools";
      /** The question, in the form of the interface. */
      readonly question: { readonly [key: string]: Json };
    }
  | {
      /** The function that waited. */
      readonly kind: "sleep";
      /** The time, in milliseconds. */
      readonly ms: number;
    };

/** A progress report of a call. */
export interface Update {
  /** One line for people. */
  readonly message: string;
  /** 0 to 1, if it is known. */
  readonly fraction: number | undefined;
  /** A value for the user interface. */
  readonly data: Json | undefined;
}

/** The outcome of a call. */
export type Outcome = (
  | {
      /** Whether there is a result. */
      readonly ok: true;
      /** The result, after its way through JSON. */
      readonly result: Json;
      readonly failure?: undefined;
      readonly message?: undefined;
    }
  | {
      /** Whether there is a result. */
      readonly ok: false;
      readonly result?: undefined;
      /** The kind of the failure. */
      readonly failure: "invalid-arguments" | "failed" | "unavailable";
      /** The message for the model. */
      readonly message: string;
    }
) & {
  /** The reported progress, in order. */
  readonly progress: readonly Update[];
  /** The lines of the log, in order. */
  readonly log: readonly Line[];
  /** The waits of a durable tool, in order. */
  readonly waits: readonly Wait[];
};

/** A line of a call's log. */
export interface Line {
  /** The importance of the line. */
  readonly level: Level;
  /** The text of the line. */
  readonly message: string;
}

/**
 * Runs a server tool natively, without a host. Arguments and result pass through JSON, as in a component. As on a host,
 * arguments that break the declared JSON Schema do not reach the tool, and a result that breaks its schema is a failure.
 * @throws If the plugin has no server tool with this name. This is a mistake in the test, not an outcome.
 */
export function run(plugin: Plugin, tool: string, args?: unknown, attempt?: Attempt): Promise<Outcome>;

/** A tool, in the form of the host. */
export interface Declaration {
  /** The name of the tool. */
  readonly name: string;
  /** The description for the model. */
  readonly description: string;
  /** The JSON Schema of the arguments. */
  readonly parameters: { readonly [keyword: string]: Json };
  /** The kind of executor. */
  readonly executor: "server" | "client" | "human" | "provider";
  /** Whether a person must approve a call first. */
  readonly approval: "auto" | "requires-approval";
  /** Whether the tool reports progress before its result. */
  readonly streaming: boolean;
  /** The options, under the names of the interface. */
  readonly options: { readonly [option: string]: Json };
}

/**
 * The declarations of the plugin, in the form of the host.
 * @throws `TypeError`, if the argument is not the result of `plugin`.
 */
export function declarations(plugin: Plugin): Declaration[];
