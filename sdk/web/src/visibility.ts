/**
 * Whether anybody can see the page. Browsers allow six connections at once to one host over all their tabs: a page that nobody
 * sees is not to hold any of them. Outside of pages, somebody always sees.
 */

export function isSeen(): boolean {
  return globalThis.document?.visibilityState !== "hidden";
}

/** Calls back whenever that changes; the returned function ends it. */
export function onSeen(changed: (isSeen: boolean) => void): () => void {
  const { document } = globalThis;
  const listener = () => changed(isSeen());
  document?.addEventListener("visibilitychange", listener);
  return () => document?.removeEventListener("visibilitychange", listener);
}

/** Waits until somebody sees the page, unless the signal ends it first; says whether somebody does. */
export function seen(signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const look = () => {
      if (!signal.aborted && !isSeen()) return;
      leave();
      signal.removeEventListener("abort", look);
      resolve(!signal.aborted);
    };
    const leave = onSeen(look);
    signal.addEventListener("abort", look);
    look();
  });
}
