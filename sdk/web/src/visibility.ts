/**
 * Whether the page is visible. Browsers allow six connections to one host over all tabs, so a hidden page must hold none. A
 * program without a page is always visible.
 */

export function isSeen(): boolean {
  return globalThis.document?.visibilityState !== "hidden";
}

/** Calls back on every change. The returned function unsubscribes. */
export function onSeen(changed: (isSeen: boolean) => void): () => void {
  const { document } = globalThis;
  const listener = () => changed(isSeen());
  document?.addEventListener("visibilitychange", listener);
  return () => document?.removeEventListener("visibilitychange", listener);
}

/** Waits until the page is visible. Returns false if the signal ended the wait. */
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
