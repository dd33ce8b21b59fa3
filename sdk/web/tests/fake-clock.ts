/** A clock that tests control, and a way to wait for a condition without waiting for time. */
import type { Clock } from "../src/clock.js";

export class FakeClock implements Clock {
  #now = Date.parse("2026-01-01T00:00:00Z");
  #timers: { at: number; callback: () => void }[] = [];
  chance = 0.5;

  now(): number {
    return this.#now;
  }

  random(): number {
    return this.chance;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** The delays of the timers, soonest first. */
  get waits(): number[] {
    return this.#timers.map(({ at }) => at - this.#now).sort((a, b) => a - b);
  }

  /** Advances the time and runs the timers in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const [next] = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
    }
    this.#now = end;
  }
}

/** Runs other tasks until a condition holds. The test's timeout ends the wait. */
export async function until<T>(condition: () => T | undefined | null | false): Promise<T> {
  for (;;) {
    const value = condition();
    if (value !== undefined && value !== null && value !== false) return value;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
