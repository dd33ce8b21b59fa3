// Loads data from the host when a page opens, and again on demand or while it changes.

import { useCallback, useEffect, useRef, useState } from "react";

export interface Loaded<T> {
  /** The last value. It stays while a newer one is loading. */
  value?: T;
  /** Why the last load failed. */
  error?: Error;
  loading: boolean;
  reload: () => void;
}

/** Loads again when `key` changes, and drops the value of the previous key. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; value?: T; error?: Error; loading: boolean }>({
    key,
    loading: true,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `turn` starts the load again.
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => (before.key === key ? { ...before, loading: true } : { key, loading: true }));
    latest.current(abort.signal).then(
      (value) => setState({ key, value, loading: false }),
      (error: Error) => {
        if (abort.signal.aborted) return;
        setState((before) => ({ ...before, key, error, loading: false }));
      },
    );
    return () => abort.abort();
  }, [key, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const current = state.key === key ? state : { loading: true };
  return { ...current, reload };
}

/** How often a view reads again, for changes without an event. */
const REFRESH_MS = 3_000;

/** Loads again when `stage` changes and, while the page is visible, every few seconds as long as `changes`. */
export function useRefresh({ reload }: Loaded<unknown>, stage: string, changes = false): void {
  const before = useRef(stage);
  useEffect(() => {
    if (before.current === stage) return;
    before.current = stage;
    reload();
  }, [stage, reload]);
  useEffect(() => {
    if (!changes) return;
    const timer = setInterval(() => document.hidden || reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, [changes, reload]);
}
