// Sends requests of the newest revision as they are. Checks messages about tasks against the schemas of the extension's package: the
// conformance suite has none for them.
import assert from "node:assert/strict";
import {
  CallToolResultV2Schema,
  CancelTaskResultV2Schema,
  CreateTaskResultV2Schema,
  GetTaskResultV2Schema,
  TaskStatusNotificationV2Schema,
  UpdateTaskResultV2Schema,
} from "@modelcontextprotocol/ext-tasks/core/v2";
import type { Host } from "./host.ts";

export const REVISION = "2026-07-28";

export type Members = Record<string, unknown>;

/** A response, or a notification. */
export interface Message {
  method?: string;
  params?: Members;
  result?: Members;
  error?: { code: number; message: string };
}

interface Schema {
  parse(value: unknown): unknown;
}

/** Fails if the schema does not allow the value, or does not have one of its members. */
function conforms(schema: Schema, value: unknown): void {
  assert.deepEqual(schema.parse(value), value);
}

/** The result that creates a task. */
export function createsTask(result: unknown): void {
  conforms(CreateTaskResultV2Schema, result);
}

/** The results of requests about tasks. */
const RESULTS: Record<string, Schema> = {
  "tasks/get": GetTaskResultV2Schema,
  "tasks/update": UpdateTaskResultV2Schema,
  "tasks/cancel": CancelTaskResultV2Schema,
};

/** The response to a request, or a notification before it. */
function check(request: string, message: Message): void {
  if (message.method === "notifications/tasks") conforms(TaskStatusNotificationV2Schema, message);
  const { result } = message;
  if (result === undefined) return;
  const schema = RESULTS[request];
  if (schema !== undefined) conforms(schema, result);
  if (result.resultType === "task") createsTask(result);
  else if (request === "tools/call") conforms(CallToolResultV2Schema, result);
}

/** A client that sends any message. */
export class Raw {
  readonly #host: Host;
  readonly #token: string;
  readonly #capabilities: Members;
  #last = 0;

  constructor(host: Host, token: string, capabilities: Members) {
    this.#host = host;
    this.#token = token;
    this.#capabilities = capabilities;
  }

  /** Sends a request with the capabilities of this client, unless it has its own. */
  async #send(method: string, params: Members): Promise<Response> {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": REVISION,
      "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": this.#capabilities,
      ...(params._meta as Members | undefined),
    };
    this.#last += 1;
    return fetch(`${this.#host.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.#token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": REVISION,
        "mcp-method": method,
        "mcp-name": String(params.name ?? params.taskId ?? ""),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: this.#last, method, params: { ...params, _meta } }),
    });
  }

  /** The response to a request. */
  async ask(method: string, params: Members): Promise<Message> {
    const message = (await (await this.#send(method, params)).json()) as Message;
    check(method, message);
    return message;
  }

  /** The result of a request. */
  async result(method: string, params: Members): Promise<Members> {
    const { result, error } = await this.ask(method, params);
    assert(result !== undefined, JSON.stringify(error));
    return result;
  }

  /** The messages of a subscription, until the caller leaves. */
  async *listen(notifications: Members): AsyncGenerator<Message> {
    const { body } = await this.#send("subscriptions/listen", { notifications });
    assert(body !== null);
    const parts = body as unknown as AsyncIterable<Uint8Array>;
    const decoder = new TextDecoder();
    let text = "";
    for await (const part of parts) {
      const events = (text + decoder.decode(part, { stream: true })).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        // A comment keeps the stream open.
        const data = event.split("\n").filter((line) => line.startsWith("data:"));
        const json = data.map((line) => line.slice("data:".length)).join("\n");
        if (json.trim() === "") continue;
        const message = JSON.parse(json) as Message;
        check("subscriptions/listen", message);
        yield message;
      }
    }
  }
}
