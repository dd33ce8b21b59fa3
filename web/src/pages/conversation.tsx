// A conversation's timeline, from its first event to what happens now.

import { useState } from "react";
import { Button } from "react-aria-components";
import { useTimeline } from "../host/follow";
import { Badge, Strange } from "../parts/bits";
import { Empty, Page, Skeleton, Trouble } from "../parts/page";
import { Turn } from "../parts/turn";

/** So many turns are shown at first: the latest. */
const TURNS = 20;

export function Conversation({ id }: { id: string }) {
  const { timeline, state, error, again } = useTimeline(id);
  const [most, setMost] = useState(TURNS);
  const hidden = Math.max(0, timeline.length - most);
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
        (state === "opening" ? <Skeleton rows={4} /> : <Empty title="Nothing has happened here yet" />)}
      {hidden > 0 && (
        <Button className="button" onPress={() => setMost(most + TURNS)}>
          Show {Math.min(TURNS, hidden)} earlier of {hidden}
        </Button>
      )}
      <ol className="turns">
        {timeline.slice(hidden).map((turn) => (
          <Turn key={turn.id} turn={turn} />
        ))}
      </ol>
    </Page>
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
