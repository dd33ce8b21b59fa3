// Tools, calls and failures. The default export of the main module is `plugin([…])`.

/// <reference path="./globals.d.ts" />

/** A JSON value. Numbers are JavaScript's: integers beyond 2^53 lose digits, so pass such numbers as strings. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  /** A member. */
  [key: string]: Json;
}

/**
 * A schema of a library that follows [Standard Schema](https://standardschema.dev) with its JSON Schema part: zod from
 * 4.2, or valibot with `toStandardJsonSchema`.
 */
export interface Schema<Input = unknown, Output = Input> {
  /** The members that Standard Schema defines. */
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

/** The result of validation: the typed value, or the problems with their positions. */
export type Checked<Output> =
  | {
      /** The typed value. */
      readonly value: Output;
      readonly issues?: undefined;
    }
  | {
      /** The problems. */
      readonly issues: readonly Issue[];
    };

/** One problem of a value. */
export interface Issue {
  /** The problem. */
  readonly message: string;
  /** The steps to its position, from the outside. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A JSON Schema as a document. Its draft is 2020-12, unless `$schema` names 2019-09 or draft-07. */
export interface JsonSchema {
  /** A keyword of JSON Schema. */
  readonly [keyword: string]: unknown;
}

/** A description of values: a library's schema, or a JSON Schema. */
export type Describes = Schema | JsonSchema;

/** The type of a valid value. A plain JSON Schema has no type for TypeScript: see `jsonSchema`. */
export type Output<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer O }
    ? O
    : never
  : Json;

/** The type of a value that a schema accepts. */
export type Input<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly input: infer I }
    ? I
    : never
  : unknown;

/** The arguments of a tool. */
export type Arguments<P> = P extends { readonly "~standard": unknown } ? Output<P> : JsonObject;

/** The importance of a log line. */
export type Level = "debug" | "info" | "warn" | "error";

/** The origin of a call, and the people behind it. Later versions may add members. */
export interface Scope {
  /** The conversation that the call's turn belongs to. */
  readonly conversation: string;
  /** The turn that contains the call. */
  readonly turn: string;
  /** The principal that submitted the turn. */
  readonly caller: string;
  /** The principal that approved the call, if one did. */
  readonly approver?: string;
  /** The value that the caller passed with the turn. */
  readonly context?: Json;
  /** A member of a later version. */
  readonly [key: string]: Json | undefined;
}

/** One call of a server tool. */
export interface Call {
  /** The id that the caller gave the call. It is the same for every attempt. */
  readonly id: string;
  /** The name of the tool. */
  readonly tool: string;
  /** The same for every attempt at this call, and different for other calls. Pass it to services with side effects. */
  readonly idempotencyKey: string;
  /** 1 at first, and one more each time the host dispatches the call again after a crash. */
  readonly attempt: number;
  /** The origin of the call. */
  readonly scope: Scope;
  /**
   * Reports progress to the clients that follow the call, if the tool declares `streaming: true`.
   * @param message One line for people.
   * @param fraction 0 to 1, if it is known.
   * @param data Any JSON for the user interface, such as a partial result.
   * @throws `Failed`, if `data` has no form in JSON.
   */
  progress(message: string, fraction?: number, data?: unknown): void;
  /** Writes a line to the call's log. `console` does the same. */
  log(level: Level, message: string): void;
  /**
   * Whether the call should end, because it was cancelled or its time is nearly up. Check this between the steps of
   * long work, and return what there is. It is always `false` on a host without this signal.
   */
  stopRequested(): boolean;
  /**
   * Waits until a person answers a question, and returns the answer. Only a tool with `durable: true` can wait. While the
   * call waits, it has no instance, and the host may be stopped. Then the host runs the function again from its beginning and
   * answers each wait that has ended with the same answer. So the function must do the same each time: clocks and random
   * numbers do. The answer is not a promise, but `await` does no harm.
   * @throws `WaitError`, if there is no answer.
   */
  ask<const R extends Describes = JsonSchema>(question: AnswerQuestion<R>): Output<R>;
  /**
   * Waits until a person chooses.
   * @throws `WaitError`, if there is no answer.
   */
  choose<const C extends string>(question: ChoiceQuestion<C>): Choice<C>;
  /**
   * Waits for a decision about a value, and returns the value as it was approved. The host cannot know whether later effects
   * match it. To bind an approval to an effect, put the effect into a tool with `approval: "requires-approval"`.
   * @throws `WaitError`, if it is not approved.
   */
  approve<S>(question: ApprovalQuestion<S>): S;
  /**
   * Waits for an external system, and returns the result that it sends. The sender is the caller, an admin, or the holder of
   * a link to the wait. So the result is untrusted. The host has only checked that it fits the schema.
   * @throws `WaitError`, if there is no result.
   */
  awaitExternal<const R extends Describes = JsonSchema>(external: External<R>): Output<R>;
  /**
   * Calls other tools, and returns their results in the order of the calls, when all of them have ended. The calls are a turn
   * of their own, with the approvals, policies and people of any turn: each may take days, or be denied. The plugin's manifest
   * requests the tools under `calls`, and the operator grants them. A call without a result is no error here.
   * @throws `WaitError`, if no tool was called.
   */
  callTools<const C extends readonly ToolCall[]>(calls: C): { readonly [each in keyof C]: Returned };
  /**
   * Waits for this number of milliseconds. On StarlingMonkey, `setTimeout` does the same in a durable tool.
   * @throws `WaitError`, if the tool is not durable; `RangeError`, if the time is not possible.
   */
  sleep(ms: number): void;
}

/** A question to a person. */
export interface Question {
  /** The text; 1 to 4096 bytes. */
  prompt: string;
  /** The maximum time of the wait, in milliseconds. By default, and at most, that of the tool. */
  expiresMs?: number;
  /** The possible harm of a wrong answer. By default that of the tool. */
  risk?: "low" | "medium" | "high" | "critical";
  /** The people who may answer: `principal:NAME`, `group:NAME` or `role:NAME`. By default any approver. */
  who?: readonly string[];
}

/** A question for an answer. */
export interface AnswerQuestion<R> extends Question {
  /** Describes the answer. The person sees a form for it. By default any JSON. */
  response?: R;
}

/** A question with choices. */
export interface ChoiceQuestion<C extends string> extends Question {
  /** 1 to 16 distinct choices of 1 to 64 characters. */
  choices: readonly C[];
}

/** The answer to a question with choices. */
export interface Choice<C extends string> {
  /** One of the choices. */
  readonly decision: C;
  /** Anything that the person added. */
  readonly data?: Json | undefined;
}

/** A question about a value. */
export interface ApprovalQuestion<S> extends Question {
  /** The value, which the approver sees in full. It must have a JSON form. */
  subject: S;
  /** The members of the value that the approver may change. By default none. */
  editable?: "none" | "all" | readonly (keyof S & string)[];
  /** How many people must approve. By default one. */
  quorum?: number;
}

/** A wait for an external system, such as the end of a job. */
export interface External<R> {
  /** The awaited result, in words for people; 1 to 4096 bytes. */
  prompt: string;
  /** The maximum time of the wait, in milliseconds. By default, and at most, that of the tool. */
  expiresMs?: number;
  /** Describes the result. By default any JSON. */
  schema?: R;
  /**
   * The name of the signal that brings the result: 1 to 64 of the characters `a-z A-Z 0-9 _ . -`. If another call of the
   * conversation waits for this name, the call fails. By default no signal brings it.
   */
  signal?: string;
  /** A value for the external system, of at most 4 KiB as JSON. */
  metadata?: unknown;
}

/** A call of another tool. All calls of one call together have a limit, 100 unless the operator sets another. */
export interface ToolCall {
  /** The name of the tool. */
  tool: string;
  /** Its arguments. They must have a JSON form. */
  arguments: unknown;
}

/** The end of a call of another tool. */
export type Returned =
  | {
      /** Whether there is a result. */
      readonly ok: true;
      /** The result. */
      readonly result: Json;
      /** `false` if the host does not control the result, as that of a client, a provider or an external system. */
      readonly trusted?: false;
    }
  | {
      /** Whether there is a result. */
      readonly ok: false;
      /** Why there is no result. */
      readonly error: NotCarriedOut;
    };

/** Why a call of another tool has no result. */
export interface NotCarriedOut {
  /** How the call ended, such as `denied` or `expired`, or the code of a failure, such as `invalid_arguments`. */
  readonly code: string;
  /** A sentence for a model. */
  readonly message: string;
}

/** The members of every declaration. */
interface Declared<P> {
  /** `^[a-zA-Z0-9_-]{1,64}$`; unique in the plugin and on the host. */
  name: string;
  /** The description for the model: what the tool does, and when to use it. */
  description: string;
  /** The arguments: an object. By default none. */
  parameters?: P;
  /** A name for people; 1 to 128 characters. */
  title?: string;
  /** The possible harm of a wrong call, which approvers see. */
  risk?: "low" | "medium" | "high" | "critical";
  /**
   * How long results are useful in a model's context. The host may remove a turn with a call of the tool `maxAgeDays` days after its end,
   * if its operator allows it.
   */
  retention?: { neverEvict: true } | { maxAgeTurns?: number; maxCount?: number; maxAgeDays?: number };
  /** The effects of a call, as far as they are known. */
  hints?: { readOnly?: boolean; destructive?: boolean; idempotent?: boolean; openWorld?: boolean };
}

/** The members of tools whose calls can wait for somebody. */
interface Waits {
  /** The maximum time of each wait, in milliseconds. By default the host's limit. */
  expiresMs?: number;
  /** The members of the turn's context that the asked people see. By default all. */
  contextKeys?: readonly string[];
}

/** A server tool that is neither gated nor durable never waits, so it has none of the members of `Waits`. */
interface WaitsNot {
  /** Such a tool cannot wait. */
  durable?: false;
  expiresMs?: never;
  contextKeys?: never;
}

/** The members of server tools whose calls may wait in the middle of their code. */
interface Durable extends Waits {
  /** Such a tool can wait. */
  durable: true;
}

/** The members of tools whose calls need no approval. */
interface Ungated {
  /** Whether a person must approve a call first. */
  approval?: "auto";
  prompt?: never;
  editable?: never;
  onExpiry?: never;
}

/** The members of tools whose calls need an approval. */
interface Gated<P> {
  /** Whether a person must approve a call first. */
  approval: "requires-approval";
  /**
   * The text that a person sees: `{name}` is an argument, `{/a/b/0}` a JSON Pointer into the arguments, `{{` and `}}`
   * are braces.
   */
  prompt?: string;
  /** The arguments that an approver may change. */
  editable?: "none" | "all" | readonly (keyof Arguments<P> & string)[];
  /** The outcome if nobody answers in time. `"approve"` only where the operator allows it. */
  onExpiry?: "error" | "deny" | "approve";
}

/** The members of server tools. */
interface Runs<P, R> {
  /** Describes the result. The host checks it. By default any JSON. */
  result?: R;
  /** The tool reports progress before its result. */
  streaming?: boolean;
  /** The maximum time of one run, in milliseconds. By default the host's limit. */
  timeoutMs?: number;
  /**
   * How the host continues a call that was running when the host was killed. In a durable tool, what it does about an HTTP request that
   * was begun and whose answer was lost; the default is then "fail".
   */
  recovery?: "retry" | "ask" | "fail";
  /** Whether a call may wait in the middle of its code: `call.ask`. package.json must have `"toolgate": {"durable": true}`. */
  durable?: boolean;
  /**
   * Runs one call, in its own instance. The returned value must have a JSON form; `undefined` becomes `null`. Errors
   * become failures: an `InvalidArguments`, `Failed` or `Unavailable` keeps its kind, and any other becomes `failed`.
   *
   * StarlingMonkey waits for a promise. QuickJS cannot wait, so the build refuses an `async` tool.
   */
  run(
    args: Arguments<P>,
    call: Call,
  ): (R extends Describes ? Input<R> : unknown) | Promise<R extends Describes ? Input<R> : unknown>;
}

/** A tool that the plugin itself runs, in the host's sandbox. */
export type ServerTool<P, R> = Declared<P> &
  Runs<P, R> &
  ((Ungated & WaitsNot) | (Ungated & Durable) | (Gated<P> & Waits));

/** A tool that the program at the user's end runs, such as a page or a device. */
export type ClientTool<P> = Declared<P> &
  Waits &
  (Ungated | Gated<P>) & {
    /** Describes the result. The host checks it. By default any JSON. */
    result?: Describes;
    /** The tool reports progress before its result. */
    streaming?: boolean;
  };

/** A question to a person, whose answer is the result. It cannot require an approval. */
export type HumanTool<P> = Declared<P> &
  Waits & {
    /** The text that the person sees: a template, as for an approval. */
    prompt?: string;
    /** Describes the answer. By default any JSON. */
    response?: Describes;
    /** The decisions to choose from. The result is then `{"decision": choice, "data": answer}`. */
    responses?: readonly string[];
    /** The outcome if nobody answers in time: an error, or this answer. */
    onExpiry?: "error" | OtherAnswer;
  };

/** The answer of a question that nobody answers in time. */
export interface OtherAnswer {
  /** The answer, which fits `response`. */
  answer: Json;
}

/** A tool that the model's provider runs inside its own stream. The host only records its calls. */
export type ProviderTool<P> = Declared<P> & {
  /** Describes the result. By default any JSON. */
  result?: Describes;
};

declare const declared: unique symbol;

/** A tool, for `plugin`. */
export interface Tool {
  readonly [declared]: true;
  /** The name of the tool. */
  readonly name: string;
}

/** The exports of the component. */
export interface Plugin {
  readonly [declared]: true;
  /** The tools, in their order. */
  readonly tools: readonly Tool[];
}

/**
 * Declares a tool that the plugin itself runs.
 * @throws `TypeError`, if the definition is not an object. `plugin` reports all other mistakes.
 */
export function tool<const P extends Describes = JsonSchema, R extends Describes | undefined = undefined>(
  definition: ServerTool<P, R>,
): Tool;

/**
 * Declares a tool that the program at the user's end runs.
 * @throws `TypeError`, if the definition is not an object. `plugin` reports all other mistakes.
 */
export function client<const P extends Describes = JsonSchema>(definition: ClientTool<P>): Tool;

/**
 * Declares a question to a person.
 * @throws `TypeError`, if the definition is not an object. `plugin` reports all other mistakes.
 */
export function human<const P extends Describes = JsonSchema>(definition: HumanTool<P>): Tool;

/**
 * Declares a tool that the model's provider runs.
 * @throws `TypeError`, if the definition is not an object. `plugin` reports all other mistakes.
 */
export function provider<const P extends Describes = JsonSchema>(definition: ProviderTool<P>): Tool;

/**
 * All tools of a plugin: `export default plugin([…])`.
 * @throws With all mistakes in the declarations at once. The build runs this, and so does a test that imports the plugin.
 */
export function plugin(tools: readonly Tool[]): Plugin;

/**
 * A plain JSON Schema of a `T`. The host checks arguments against it before the plugin sees them. A `check` also
 * validates them: a schema of a library without a JSON Schema of its own, such as zod/mini.
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

/** Why a call has no result. The message is for the model: what was wrong, and what it can do instead. */
export abstract class Failure extends Error {
  /** The kind of the failure. */
  abstract readonly tag: "invalid-arguments" | "failed" | "unavailable";
}

/** The arguments fit the schema but make no sense. */
export class InvalidArguments extends Failure {
  /** The kind of the failure. */
  readonly tag: "invalid-arguments";
}

/** The attempt failed. Repeating it the same way will not help. */
export class Failed extends Failure {
  /** The kind of the failure. */
  readonly tag: "failed";
}

/** Something that the tool needs is unavailable. Trying again later may help. */
export class Unavailable extends Failure {
  /** The kind of the failure. */
  readonly tag: "unavailable";
}

/** Why a wait in the middle of a call has no answer. If the tool does not catch it, the call fails with its message. */
export class WaitError extends Failed {
  /**
   * `denied`: somebody denied it. `expired`: nobody answered in time. `cancelled`: the call is being cancelled. `not-granted`:
   * the call may not wait. `malformed`: the answer does not fit the schema.
   */
  readonly reason: "denied" | "expired" | "cancelled" | "not-granted" | "malformed";
  /** The comment of the person who denied it. */
  readonly comment: string | undefined;
}
