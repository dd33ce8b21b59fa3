/** What goes wrong, in one type: what the host refused, and what never reached it. */
import type { Pointed, Problem } from "./wire.js";

/**
 * A request that was not carried out. `code` is the host's own stable word (`stale`, `not-allowed`, `invalid`, …), or one of
 * ours: `unreachable` where no answer came, `not-toolgate` where what answered is no toolgate host.
 */
export class ToolgateError extends Error {
  override readonly name = "ToolgateError";

  constructor(
    readonly code: string,
    /** The HTTP status; 0 where no answer came. */
    readonly status: number,
    /** What was wrong this time. The host has escaped what it quotes. */
    readonly detail: string,
    /** Where in the body something is wrong, as JSON Pointers (`invalid`). */
    readonly errors: readonly Pointed[] = [],
    /** Everything that the host said, if it did. */
    readonly problem?: Problem,
    options?: ErrorOptions,
  ) {
    super(detail, options);
  }

  /** Whether the same request may succeed later without anybody changing anything. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }

  /** After how many milliseconds it is worth while to try again, if the host said so. */
  get retryAfter(): number | undefined {
    const seconds = this.problem?.retry_after;
    return typeof seconds === "number" ? seconds * 1000 : undefined;
  }

  /** What a response that is no success says. */
  static async of(response: Response): Promise<ToolgateError> {
    const text = await response.text().catch(() => "");
    const problem = parsed(text);
    if (problem === undefined) {
      const detail = `the server answered ${response.status} and not as a toolgate host does: is this its address?`;
      return new ToolgateError("not-toolgate", response.status, detail);
    }
    return ToolgateError.from(problem);
  }

  static from(problem: Problem): ToolgateError {
    const errors = Array.isArray(problem.errors) ? problem.errors : [];
    return new ToolgateError(problem.code, problem.status, problem.detail, errors, problem);
  }

  /** What a `fetch` that failed says; `isElsewhere` is whether the page is another origin's. An abort stays an abort. */
  static unreachable(cause: unknown, isElsewhere = false): unknown {
    if (cause instanceof Error && cause.name === "AbortError") return cause;
    if (cause instanceof ToolgateError) return cause;
    const other = isElsewhere ? ", or it does not allow this page (CORS)" : "";
    const detail = `the host does not answer; it may be down${other}`;
    return new ToolgateError("unreachable", 0, detail, [], undefined, { cause });
  }
}

function parsed(text: string): Problem | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return undefined;
    const { code, status, detail } = value as Partial<Problem>;
    const isProblem = typeof code === "string" && typeof status === "number" && typeof detail === "string";
    return isProblem ? (value as Problem) : undefined;
  } catch {
    return undefined;
  }
}
