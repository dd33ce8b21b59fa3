// Lists that are loaded page by page.

import { useCallback, useEffect, useRef, useState } from "react";
import { Button } from "react-aria-components";

export interface Pages<T> {
  items: T[];
  loading: boolean;
  error?: Error;
  hasMore: boolean;
  more: () => void;
  again: () => void;
}

type Ask<T, C> = (after: C | undefined, signal: AbortSignal) => Promise<{ items: T[]; next: C | undefined }>;

/** The most empty pages that are skipped automatically. With a filter, the host may return empty pages. */
const EMPTY_PAGES = 20;

/** Loads the first page of `key`, and the others on demand. */
export function usePages<T, C>(key: string, ask: Ask<T, C>): Pages<T> {
  const [state, setState] = useState<{ items: T[]; next?: C | undefined; error?: Error; loading: boolean }>({
    items: [],
    loading: true,
  });
  const latest = useRef(ask);
  latest.current = ask;
  const running = useRef<AbortController>(undefined);
  const read = useCallback(async (after: C | undefined, before: T[]) => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    setState({ items: before, next: after, loading: true });
    let [items, next] = [before, after];
    try {
      for (let page = 0; page < EMPTY_PAGES; page += 1) {
        const answer = await latest.current(next, abort.signal);
        [items, next] = [[...items, ...answer.items], answer.next];
        if (answer.items.length > 0 || next === undefined) break;
      }
      if (!abort.signal.aborted) setState({ items, next, loading: false });
    } catch (error) {
      if (!abort.signal.aborted) setState({ items, next, loading: false, error: error as Error });
    }
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another key is another list.
  useEffect(() => {
    void read(undefined, []);
    return () => running.current?.abort();
  }, [key, read]);
  return {
    items: state.items,
    loading: state.loading,
    ...(state.error ? { error: state.error } : {}),
    hasMore: state.next !== undefined,
    more: () => void read(state.next, state.items),
    again: () => void read(state.next, state.items),
  };
}

export function More<T>({ pages }: { pages: Pages<T> }) {
  if (!pages.hasMore || pages.error || pages.items.length + Number(!pages.loading) === 0) return null;
  return (
    <div className="more">
      <Button className="button" onPress={pages.more} isPending={pages.loading}>
        {pages.loading ? "Loading" : "Show more"}
      </Button>
    </div>
  );
}
