// The journal of a durable call, which is read when somebody opens it.

import { useEffect, useRef } from "react";
import { useLoad } from "../host/load";
import { useSession } from "../session";
import { shown } from "../text/shown";
import { bytes, counted } from "../text/words";
import { allEntries, type Effect, type Part, partsOf } from "../timeline/journal";
import type { TimelineCall } from "../timeline/timeline";
import { Badge, When } from "./bits";
import { Shown } from "./page";

/** A call that runs records more without an event. */
const REFRESH_MS = 3_000;

export function Journal({ conversation, call }: { conversation: string; call: TimelineCall }) {
  const { host } = useSession();
  const loaded = useLoad(`journal ${conversation} ${call.id}`, (signal) =>
    allEntries((after) =>
      host.toolgate.callJournal(conversation, call.id, {
        limit: 500,
        ...(after !== undefined && { after }),
        signal,
      }),
    ),
  );
  const { reload } = loaded;
  // The call has recorded something before each of its steps, and before its end.
  const stage = `${call.attempt} ${call.state} ${call.waits.length}`;
  const before = useRef(stage);
  useEffect(() => {
    if (before.current === stage) return;
    before.current = stage;
    reload();
  }, [stage, reload]);
  const runs = call.state === "running";
  useEffect(() => {
    if (!runs) return;
    const timer = setInterval(reload, REFRESH_MS);
    return () => clearInterval(timer);
  }, [runs, reload]);
  return (
    <Shown loaded={loaded}>
      {({ entries, length }) => <Parts parts={partsOf(entries)} missing={length - entries.length} />}
    </Shown>
  );
}

export function Parts({ parts, missing }: { parts: Part[]; missing: number }) {
  if (parts.length === 0) return <p className="call-line">This call has recorded nothing.</p>;
  return (
    <>
      {parts.map(({ after, effects }) => (
        <section key={after} aria-label={place(after)}>
          <h5>{place(after)}</h5>
          <ol className="code log">
            {effects.map((effect) => (
              <EffectLine key={effect.number} effect={effect} />
            ))}
          </ol>
        </section>
      ))}
      {missing > 0 && <p className="call-line">{counted(missing, "more entry", "more entries")}</p>}
    </>
  );
}

function place(after: number): string {
  return after === 0 ? "From the beginning" : `After step ${after}`;
}

function EffectLine({ effect }: { effect: Effect }) {
  return (
    <li className="log-line">
      <span className="log-number">{effect.number}</span>
      <span className="log-level">{effect.run === undefined ? "" : `run ${effect.run}`}</span>
      <span className="log-message" dir="auto">
        {effect.function === undefined ? "recorded by an older host" : shown(effect.function)}{" "}
        {effect.state === "begun" && <Badge tone="waiting">begun, without a result</Badge>}
        {effect.state === "refused" && <Badge tone="waiting">refused for now</Badge>}
        {effect.bytes !== undefined && <span className="log-number">{bytes(effect.bytes)}</span>}{" "}
        <When at={effect.at} />
      </span>
    </li>
  );
}
