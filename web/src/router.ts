// The router. The host answers every path of the console with the same page, so that links can be bookmarked and shared.

import { useSyncExternalStore } from "react";

const MOVED = "toolgate-moved";

/** Goes to a path of the console. `replace` removes the current page from the history. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  const now = location.pathname + location.search;
  if (options.replace || to === now) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  dispatchEvent(new Event(MOVED));
}

function subscribe(changed: () => void): () => void {
  addEventListener("popstate", changed);
  addEventListener(MOVED, changed);
  return () => {
    removeEventListener("popstate", changed);
    removeEventListener(MOVED, changed);
  };
}

/** The path, such as `/audit`. */
export function usePath(): string {
  return useSyncExternalStore(subscribe, () => location.pathname);
}

/** The query, and a function that changes parameters. An empty value removes one. */
export function useQuery(): [URLSearchParams, (changes: Record<string, string>) => void] {
  const search = useSyncExternalStore(subscribe, () => location.search);
  const change = (changes: Record<string, string>) => {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === "") query.delete(name);
      else query.set(name, value);
    }
    const text = query.toString();
    navigate(location.pathname + (text ? `?${text}` : ""), { replace: true });
  };
  return [new URLSearchParams(search), change];
}

/**
 * The parts of a path that a pattern names: `/conversations/:c` and `/conversations/a%20b` give `{ c: "a b" }`.
 * Undefined if the path does not match.
 */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split("/");
  const found = path.split("/");
  if (wanted.length !== found.length) return undefined;
  const parts: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = found[index] ?? "";
    if (!part.startsWith(":")) {
      if (part !== value) return undefined;
      continue;
    }
    try {
      parts[part.slice(1)] = decodeURIComponent(value);
    } catch {
      return undefined;
    }
    if (value === "") return undefined;
  }
  return parts;
}

/** A path within this console, otherwise the inbox. After the login, the page must not redirect to another site. */
export function ownPath(to: string | null): string {
  if (to === null || !to.startsWith("/")) return "/";
  const url = new URL(to, location.origin);
  return url.origin === location.origin ? url.pathname + url.search : "/";
}
