// The host's API in the name of one principal, for what happens on the other side of the console.

/** A turn as the host tells it; only what tests read. */
export interface Turn {
  turn: string;
  conversation: string;
  state: string;
  calls: { id: string; state: string; outcome?: string; suspension?: string; content?: unknown }[];
}

/** Who answered, how, and by what if not by their own log-in or token. */
export interface Answer {
  by: string;
  action: string;
  via?: string;
}

let calls = 0;

export class Client {
  /** Its token, to log in with. */
  readonly token: string;
  readonly #url: () => string;

  constructor(url: () => string, token: string) {
    this.#url = url;
    this.token = token;
  }

  /** Asks, and fails unless the answer is a success. */
  async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const { status, value } = await this.ask<T>(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status}: ${JSON.stringify(value)}`);
    return value;
  }

  /** Asks, and takes any answer. */
  async ask<T>(method: string, path: string, body?: unknown): Promise<{ status: number; value: T }> {
    const { status, text } = await this.#exchange(
      method,
      path,
      body === undefined ? body : JSON.stringify(body),
    );
    return { status, value: (text === "" ? undefined : JSON.parse(text)) as T };
  }

  /** What it answers, as it was written. */
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

  /** One call as a turn of its own, once nothing of it runs. */
  call(conversation: string, tool: string, args: unknown, context?: object): Promise<Turn> {
    calls += 1;
    return this.send<Turn>("POST", `/v1/conversations/${conversation}/turns?wait_ms=20000`, {
      calls: [{ id: `call-${calls}`, tool, arguments: args }],
      ...(context && { context }),
    });
  }

  /** The same with arguments as they are written. */
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

  /** What became of the turn's call, once the turn has ended. */
  async ended(turn: Turn): Promise<Turn["calls"][number]> {
    const path = `/v1/conversations/${turn.conversation}/turns/${turn.turn}?wait_ms=20000`;
    const now = await this.send<Turn>("GET", path);
    const [call] = now.calls;
    if (now.state === "open" || call === undefined)
      throw new Error(`the turn does not end: ${JSON.stringify(now)}`);
    return call;
  }

  /** Who answered this suspension and how, as the audit has it. */
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
