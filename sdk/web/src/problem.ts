/** One error type for requests that the host refused and requests that never reached it. */
import type { Pointed, Problem } from "./wire.js";

/**
 * A failed request. `code` is the host's stable error code (`stale`, `not-allowed`, `invalid`, …), or one of this package:
 * `unreachable` if no response came, `not-toolgate` if the response came from another program.
 */
export class ToolgateError extends Error {
  /** The name of the class. */
  override readonly name = "ToolgateError";

  /** Makes an error from its parts. `ToolgateError.of` and `ToolgateError.from` read them from a response. */
  constructor(
    /** The stable code of the error. */
    readonly code: string,
    /** The HTTP status; 0 without a response. */
    readonly status: number,
    /** Explains the failure. The host has escaped quoted text. */
    readonly detail: string,
    /** The invalid parts of the body, as JSON Pointers (`invalid`). */
    readonly errors: readonly Pointed[] = [],
    /** The host's complete problem document, if there is one. */
    readonly problem?: Problem,
    options?: ErrorOptions,
  ) {
    super(detail, options);
  }

  /** Whether the same request may succeed later without any change. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }

  /** The milliseconds to wait before a retry, if the host says so. */
  get retryAfter(): number | undefined {
    const seconds = this.problem?.retry_after;
    return typeof seconds === "number" ? seconds * 1000 : undefined;
  }

  /** Makes an error from an unsuccessful response. */
  static async of(response: Response): Promise<ToolgateError> {
    const text = await response.text().catch(() => "");
    const problem = parsed(text);
    if (problem === undefined) {
      const detail = `the server answered ${response.status} and not as a toolgate host does: is this its address?`;
      return new ToolgateError("not-toolgate", response.status, detail);
    }
    return ToolgateError.from(problem);
  }

  /** Makes an error from the host's problem document. */
  static from(problem: Problem): ToolgateError {
    const errors = Array.isArray(problem.errors) ? problem.errors : [];
    return new ToolgateError(problem.code, problem.status, problem.detail, errors, problem);
  }

  /** Makes an error from a failed `fetch`. `isElsewhere` says whether the page has another origin. An abort stays an abort. */
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
