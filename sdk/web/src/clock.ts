/** Time and chance behind one interface, so that tests own both. */

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls back once after so many milliseconds; the returned function takes that back. */
  after(ms: number, callback: () => void): () => void;
  /** A number from 0 up to, and without, 1. */
  random(): number;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, callback) => {
    // Browsers take a longer delay for none at all.
    const timer = setTimeout(callback, Math.min(ms, 0x7fffffff));
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

/** Waits, unless the signal ends it first; says whether the time has passed. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const aborted = () => {
      cancel();
      resolve(false);
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener("abort", aborted);
      resolve(true);
    });
    signal.addEventListener("abort", aborted, { once: true });
  });
}
