// Something of the host that a page shows: asked for when the page opens, and again on demand.

import { useCallback, useEffect, useRef, useState } from "react";

export interface Loaded<T> {
  /** The last answer; it stays while a newer one is asked for. */
  value?: T;
  /** Why there is none, or none that is newer. */
  error?: Error;
  loading: boolean;
  reload: () => void;
}

/** Loads again whenever `key` changes, and forgets what belonged to another key. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; value?: T; error?: Error; loading: boolean }>({
    key,
    loading: true,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `turn` is what asks again.
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
