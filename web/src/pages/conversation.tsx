// A conversation's timeline, live.

import { Fragment, useState } from "react";
import { Button, Link } from "react-aria-components";
import { useTimeline } from "../host/follow";
import { Badge, Strange } from "../parts/bits";
import { Empty, Page, Skeleton, Trouble, Unreadable } from "../parts/page";
import { isAnswerable, isNamed, Turn } from "../parts/turn";
import type { Timeline } from "../timeline/timeline";

/** The number of latest turns that are shown first. */
const TURNS = 20;

export function Conversation({ id }: { id: string }) {
  const { timeline, state, error, again } = useTimeline(id);
  const [most, setMost] = useState(TURNS);
  const named = timeline.findIndex((turn) => isNamed(turn.id));
  const latest = Math.max(0, timeline.length - most);
  const hidden = named < 0 ? latest : Math.min(latest, named);
  return (
    <Page
      title="Conversation"
      aside={<Live state={state} />}
      lead={
        <code>
          <Strange>{id}</Strange>
        </code>
      }
    >
      {error && <Trouble error={error} again={again} />}
      {timeline.length === 0 &&
        !error &&
        (state === "opening" ? <Skeleton rows={4} /> : <Empty title="Nothing has happened yet" />)}
      <Unreadable count={timeline.reduce((sum, { unreadable }) => sum + unreadable, 0)} />
      <Waiting timeline={timeline} />
      {hidden > 0 && (
        <Button className="button" onPress={() => setMost(most + TURNS)}>
          Show {Math.min(TURNS, hidden)} earlier of {hidden}
        </Button>
      )}
      <ol className="turns">
        {timeline.slice(hidden).map((turn) => (
          <Turn key={turn.id} conversation={id} turn={turn} />
        ))}
      </ol>
    </Page>
  );
}

/** The most waiting calls that are named. */
const NAMED = 5;

/** Links to the calls that wait for an answer, anywhere in the conversation. */
function Waiting({ timeline }: { timeline: Timeline }) {
  const waits = timeline
    .flatMap(({ calls }) => calls)
    .flatMap(({ tool, waits }) => waits.map((wait) => ({ tool, ...wait })))
    .filter(({ end, kind }) => end === undefined && isAnswerable(kind));
  if (waits.length === 0) return null;
  return (
    <p className="waiting">
      {waits.length === 1 ? "Waits for an answer: " : `${waits.length} calls wait for answers: `}
      {waits.slice(0, NAMED).map(({ tool, suspension }, index) => (
        <Fragment key={suspension}>
          {index > 0 && ", "}
          <Link className="link" href={`/suspensions/${encodeURIComponent(suspension)}`}>
            <Strange>{tool}</Strange>
          </Link>
        </Fragment>
      ))}
      {waits.length > NAMED && " …"}
    </p>
  );
}

function Live({ state }: { state: "opening" | "live" | "waiting" }) {
  const words = { opening: "opening", live: "live", waiting: "connecting again" };
  return (
    <span role="status">
      <Badge tone={state === "live" ? "good" : "waiting"}>{words[state]}</Badge>
    </span>
  );
}
