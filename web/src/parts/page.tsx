// What every page has: a title that the browser shows and the focus moves to, and a place for what is not there.

import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "react-aria-components";
import type { Loaded } from "../host/load";

interface PageProps {
  title: string;
  /** What stands beside the title. */
  aside?: ReactNode;
  /** One sentence below the title. */
  lead?: ReactNode;
  wide?: boolean;
  children: ReactNode;
}

// The first page is not stepped into: a browser begins at the top by itself.
let moved = false;

export function Page({ title, aside, lead, wide, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · toolgate`;
  }, [title]);
  useEffect(() => {
    if (moved) heading.current?.focus({ preventScroll: true });
    if (moved) scrollTo(0, 0);
    moved = true;
  }, []);
  return (
    <div className={wide ? "page page-wide" : "page"}>
      <header className="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {aside && <div className="page-aside">{aside}</div>}
      </header>
      {lead && <p className="lead">{lead}</p>}
      {children}
    </div>
  );
}

/** A list that holds nothing, and what that means. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  );
}

/** The outline of what is on its way. */
export function Skeleton({ rows = 3 }: { rows?: number }) {
  return (
    <div className="skeleton" role="status">
      <span className="visually-hidden">Loading</span>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all alike.
        <div key={row} className="skeleton-row" aria-hidden="true" />
      ))}
    </div>
  );
}

/** Why there is nothing to show, and a way to try again. */
export function Trouble({ error, again }: { error: Error; again: () => void }) {
  return (
    <div className="trouble" role="alert">
      <p>{error.message}</p>
      <Button className="button" onPress={again}>
        Try again
      </Button>
    </div>
  );
}

/** Shows what was loaded; what waits and what went wrong look alike everywhere. */
export function Shown<T>({
  loaded,
  rows,
  children,
}: {
  loaded: Loaded<T>;
  rows?: number;
  children: (value: T) => ReactNode;
}) {
  return (
    <>
      {loaded.error && <Trouble error={loaded.error} again={loaded.reload} />}
      {loaded.value !== undefined ? (
        children(loaded.value)
      ) : loaded.error ? null : (
        <Skeleton {...(rows ? { rows } : {})} />
      )}
    </>
  );
}
