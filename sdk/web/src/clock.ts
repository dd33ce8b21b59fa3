/** Time and randomness behind one interface. */

/** Time and randomness, so that tests control both. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls back once after this many milliseconds. The returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
  /** A random number, at least 0 and less than 1. */
  random(): number;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, callback) => {
    // Browsers treat a longer delay as 0.
    const timer = setTimeout(callback, Math.min(ms, 0x7fffffff));
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

/** Waits. Returns false if the signal ended the wait. */
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
