// The host's API as one principal, for the other side of a test.

/** The members of a turn that tests read. */
export interface Turn {
  turn: string;
  conversation: string;
  state: string;
  calls: { id: string; state: string; outcome?: string; suspension?: string; content?: unknown }[];
}

/** An answer in the audit. */
export interface Answer {
  by: string;
  action: string;
  via?: string;
}

let calls = 0;

export class Client {
  /** The token for the log-in. */
  readonly token: string;
  readonly #url: () => string;

  constructor(url: () => string, token: string) {
    this.#url = url;
    this.token = token;
  }

  /** Sends a request, and fails unless the response is a success. */
  async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const { status, value } = await this.ask<T>(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status}: ${JSON.stringify(value)}`);
    return value;
  }

  /** Sends a request, and returns any response. */
  async ask<T>(method: string, path: string, body?: unknown): Promise<{ status: number; value: T }> {
    const { status, text } = await this.#exchange(
      method,
      path,
      body === undefined ? body : JSON.stringify(body),
    );
    return { status, value: (text === "" ? undefined : JSON.parse(text)) as T };
  }

  /** The text of a response. */
  async text(path: string): Promise<string> {
    return (await this.#exchange("GET", path)).text;
  }

  async #exchange(method: string, path: string, body?: string): Promise<{ status: number; text: string }> {
    const response = await fetch(this.#url() + path, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body }),
    });
    return { status: response.status, text: await response.text() };
  }

  /** Submits one call as a turn, and waits until nothing runs. */
  call(conversation: string, tool: string, args: unknown, context?: object): Promise<Turn> {
    calls += 1;
    return this.send<Turn>("POST", `/v1/conversations/${conversation}/turns?wait_ms=20000`, {
      calls: [{ id: `call-${calls}`, tool, arguments: args }],
      ...(context && { context }),
    });
  }

  /** The same, with the exact text of the arguments. */
  async callText(conversation: string, tool: string, args: string): Promise<Turn> {
    calls += 1;
    const { status, text } = await this.#exchange(
      "POST",
      `/v1/conversations/${conversation}/turns?wait_ms=20000`,
      `{"calls":[{"id":"call-${calls}","tool":"${tool}","arguments":${args}}]}`,
    );
    if (status >= 300) throw new Error(`the call was refused: ${status}: ${text}`);
    return JSON.parse(text) as Turn;
  }

  /** The turn's call, after the turn has ended. */
  async ended(turn: Turn): Promise<Turn["calls"][number]> {
    const path = `/v1/conversations/${turn.conversation}/turns/${turn.turn}?wait_ms=20000`;
    const now = await this.send<Turn>("GET", path);
    const [call] = now.calls;
    if (now.state === "open" || call === undefined)
      throw new Error(`the turn does not end: ${JSON.stringify(now)}`);
    return call;
  }

  /** The answers of a conversation in the audit. */
  async answers(conversation: string): Promise<Answer[]> {
    const audit = await this.send<{ entries: Answer[] }>(
      "GET",
      `/v1/audit?conversation=${conversation}&limit=500`,
    );
    return audit.entries
      .filter(({ action }) => ["approve", "deny", "answer", "decline", "expired", "result"].includes(action))
      .map(({ by, action, via }) => ({ by, action, ...(via && { via }) }));
  }
}

/** The suspension that a turn's only call waits for. */
export function suspensionOf(turn: Turn): string {
  const suspension = turn.calls[0]?.suspension;
  if (suspension === undefined) throw new Error(`the call waits for nobody: ${JSON.stringify(turn)}`);
  return suspension;
}
