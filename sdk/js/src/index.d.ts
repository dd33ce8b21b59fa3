/// <reference path="./globals.d.ts" />

/** A JSON value. Numbers are those of JavaScript: integers beyond 2^53 lose digits, so hand such numbers on as strings. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  [key: string]: Json;
}

/**
 * A schema of a library that follows [Standard Schema](https://standardschema.dev) and its JSON Schema part, as zod from 4.2 on
 * does; of valibot with `toStandardJsonSchema`.
 */
export interface Schema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly validate: (value: unknown) => Checked<Output> | Promise<Checked<Output>>;
    readonly jsonSchema: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
    };
  };
}

/** What a schema says of a value: the value as its type, or what is wrong with it and where. */
export type Checked<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/** One thing that is wrong with a value. */
export interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A JSON Schema (draft 2020-12) as it is written down. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/** What describes a value: a library's schema, or a JSON Schema. */
export type Describes = Schema | JsonSchema;

/** The type of a value that a schema let through. A plain JSON Schema says nothing to TypeScript: see `jsonSchema`. */
export type Output<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer O }
    ? O
    : never
  : Json;

/** The type of a value that a schema takes. */
export type Input<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly input: infer I }
    ? I
    : never
  : unknown;

/** The arguments of a tool. */
export type Arguments<P> = P extends { readonly "~standard": unknown } ? Output<P> : JsonObject;

/** How much a log line matters. */
export type Level = "debug" | "info" | "warn" | "error";

/** Who asked for a call, and where. More may come. */
export interface Scope {
  readonly conversation: string;
  readonly turn: string;
  readonly caller: string;
  /** Who approved the call, if there was one. */
  readonly approver?: string;
  /** What the caller passed along with the turn. */
  readonly context?: Json;
  readonly [key: string]: Json | undefined;
}

/** One call of a server tool. */
export interface Call {
  /** The id that the caller gave the call, the same at every attempt. */
  readonly id: string;
  /** The name of the tool. */
  readonly tool: string;
  /** Stable over every attempt at this call and never used for another: pass it to services with side effects. */
  readonly idempotencyKey: string;
  /** 1, then one more each time that the call is dispatched again after a crash. */
  readonly attempt: number;
  /** Who asked, and where. */
  readonly scope: Scope;
  /**
   * Reports progress to the clients that follow the call. Shown for tools that say `streaming: true`.
   * @param message One line for people.
   * @param fraction 0 to 1, where it is known.
   * @param data Any JSON for the user interface, such as a partial result.
   */
  progress(message: string, fraction?: number, data?: unknown): void;
  /** Writes a line to the call's log. `console` does the same. */
  log(level: Level, message: string): void;
  /**
   * Whether the call should come to its end: nobody waits for its result any more, or its time is nearly up. Ask between the
   * steps of long work, and end with what there is. Always `false` on a host that has no such signal.
   */
  stopRequested(): boolean;
}

interface Declared<P> {
  /** `^[a-zA-Z0-9_-]{1,64}$`; unique in the plugin and on the host. */
  name: string;
  /** For the model: what the tool does, and when to use it. */
  description: string;
  /** The arguments: an object. Absent means none. */
  parameters?: P;
  /** For people; 1 to 128 characters. */
  title?: string;
  /** The possible harm of a wrong call, which approvers see. */
  risk?: "low" | "medium" | "high" | "critical";
  /** How long a result is worth keeping in a model's context. */
  retention?: { neverEvict: true } | { maxAgeTurns?: number; maxCount?: number };
  /** What a call does to the world, as far as it is known. */
  hints?: { readOnly?: boolean; destructive?: boolean; idempotent?: boolean; openWorld?: boolean };
}

interface Waits {
  /** Bound on each wait, in milliseconds. Absent means the host's. */
  expiresMs?: number;
  /** The members of the turn's context that approvers see. Absent means all. */
  contextKeys?: readonly string[];
}

interface WaitsNot {
  expiresMs?: never;
  contextKeys?: never;
}

interface Ungated {
  /** Whether a person must approve a call first. */
  approval?: "auto";
  prompt?: never;
  editable?: never;
  onExpiry?: never;
}

interface Gated<P> {
  /** Whether a person must approve a call first. */
  approval: "requires-approval";
  /** What a person is shown: `{name}` is an argument, `{/a/b/0}` a JSON Pointer into the arguments, `{{` and `}}` are braces. */
  prompt?: string;
  /** What an approver may change. */
  editable?: "none" | "all" | readonly (keyof Arguments<P> & string)[];
  /** What ends a wait that nobody ended. `"approve"` only where the operator allows it. */
  onExpiry?: "error" | "deny" | "approve";
}

interface Runs<P, R> {
  /** Describes the result; the host checks it. Absent means any JSON. */
  result?: R;
  /** Reports progress before its result. */
  streaming?: boolean;
  /** Bound on running once, in milliseconds. Absent means the host's. */
  timeoutMs?: number;
  /** What happens to a call that was running when the host was killed. */
  recovery?: "retry" | "ask" | "fail";
  /**
   * Carries out one call, in an instance of its own. What it returns must have a JSON form; `undefined` is `null`. What it
   * throws is a failure: an `InvalidArguments`, `Failed` or `Unavailable` as it says, anything else is `failed`.
   *
   * A promise is waited for on StarlingMonkey. QuickJS cannot wait: a tool there is refused if it is `async`.
   */
  run(
    args: Arguments<P>,
    call: Call,
  ): (R extends Describes ? Input<R> : unknown) | Promise<R extends Describes ? Input<R> : unknown>;
}

/** A tool that the plugin itself carries out, in the host's sandbox. */
export type ServerTool<P, R> = Declared<P> & Runs<P, R> & ((Ungated & WaitsNot) | (Gated<P> & Waits));

/** A tool that the program at the user's end carries out: a page, a device. */
export type ClientTool<P> = Declared<P> &
  Waits &
  (Ungated | Gated<P>) & {
    /** Describes the result; the host checks it. Absent means any JSON. */
    result?: Describes;
    /** Reports progress before its result. */
    streaming?: boolean;
  };

/** A question to a person: the answer is the result. It cannot require an approval. */
export type HumanTool<P> = Declared<P> &
  Waits & {
    /** What the person is shown, a template as for an approval. */
    prompt?: string;
    /** Describes the answer. Absent means any JSON. */
    response?: Describes;
    /** The decisions to choose from; the result is then `{"decision": choice, "data": answer}`. */
    responses?: readonly string[];
    /** What ends a wait that nobody ended: an error, or this answer. */
    onExpiry?: "error" | { answer: Json };
  };

/** A tool that the model's provider carries out inside its own stream: the host records its calls and never runs one. */
export type ProviderTool<P> = Declared<P> & {
  /** Describes the result. Absent means any JSON. */
  result?: Describes;
};

declare const declared: unique symbol;

/** A tool, for `plugin`. */
export interface Tool {
  readonly [declared]: true;
  readonly name: string;
}

/** What the component exports. */
export interface Plugin {
  readonly [declared]: true;
  readonly tools: readonly Tool[];
}

/** Declares a tool that the plugin itself carries out. */
export function tool<const P extends Describes = JsonSchema, R extends Describes | undefined = undefined>(
  definition: ServerTool<P, R>,
): Tool;

/** Declares a tool that the program at the user's end carries out. */
export function client<const P extends Describes = JsonSchema>(definition: ClientTool<P>): Tool;

/** Declares a question to a person. */
export function human<const P extends Describes = JsonSchema>(definition: HumanTool<P>): Tool;

/** Declares a tool that the model's provider carries out. */
export function provider<const P extends Describes = JsonSchema>(definition: ProviderTool<P>): Tool;

/**
 * All tools of a plugin: `export default plugin([…])`.
 * @throws With everything that is wrong in the declarations, at once. The build runs this, and so does a test that imports the
 * plugin.
 */
export function plugin(tools: readonly Tool[]): Plugin;

/**
 * A plain JSON Schema (draft 2020-12) of a `T`. The host checks arguments against it before the plugin sees them; where `check`
 * is given, a schema of a library without a JSON Schema of its own (zod/mini for instance), it looks at them as well.
 */
export function jsonSchema<T>(schema: JsonSchema): Schema<T, T>;
export function jsonSchema<I, O>(
  schema: JsonSchema,
  check: {
    readonly "~standard": {
      readonly version: 1;
      readonly vendor: string;
      readonly types?: { readonly input: I; readonly output: O } | undefined;
      readonly validate: (value: unknown) => Checked<O> | Promise<Checked<O>>;
    };
  },
): Schema<I, O>;

/** Why a call has no result. The message is for the model: what was wrong, and what it could do instead. */
export abstract class Failure extends Error {
  abstract readonly tag: "invalid-arguments" | "failed" | "unavailable";
}

/** The arguments fit the schema and still make no sense. */
export class InvalidArguments extends Failure {
  readonly tag: "invalid-arguments";
}

/** It was tried and did not work; trying again in the same way will not help. */
export class Failed extends Failure {
  readonly tag: "failed";
}

/** What the tool needs cannot be reached now; trying again later may help. */
export class Unavailable extends Failure {
  readonly tag: "unavailable";
}
