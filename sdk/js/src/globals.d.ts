// Features beyond the language that both engines have. The names merge with those of the web's own declarations.

/** The console of both engines. During a call it writes to the call's log, and during the build its output is dropped. */
interface Console {
  /** Writes to the call's log, at level `debug`. */
  debug(...values: unknown[]): void;
  /** Writes to the call's log, at level `info`. */
  log(...values: unknown[]): void;
  /** Writes to the call's log, at level `info`. */
  info(...values: unknown[]): void;
  /** Writes to the call's log, at level `warn`. */
  warn(...values: unknown[]): void;
  /** Writes to the call's log, at level `error`. */
  error(...values: unknown[]): void;
}

declare var console: Console;
