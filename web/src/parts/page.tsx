// The parts of every page: a title that gets the focus, and the empty, loading and error states.

import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "react-aria-components";
import type { Loaded } from "../host/load";
import { counted } from "../text/words";

interface PageProps {
  title: string;
  /** Shown beside the title. */
  aside?: ReactNode;
  /** One sentence below the title. */
  lead?: ReactNode;
  wide?: boolean;
  children: ReactNode;
}

// The first page does not move the focus, because a browser starts at the top.
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

/** An empty list, with an explanation. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  );
}

/** The placeholder of a list that is loading. */
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

/** An error, and a button to try again. */
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

/** Shows the loaded value, or the loading or error state. */
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

/** Says that stored records are damaged. */
export function Unreadable({ count }: { count: number }) {
  if (count === 0) return null;
  return (
    <p className="trouble" role="status">
      <span>
        {counted(count, "record")} cannot be read, because stored data is damaged; see{" "}
        <code>toolgate store salvage</code>.
      </span>
    </p>
  );
}
