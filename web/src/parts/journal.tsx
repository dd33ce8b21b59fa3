// The journal of a durable call, which is read when somebody opens it.

import { useLoad, useRefresh } from "../host/load";
import { useSession } from "../session";
import { shown } from "../text/shown";
import { bytes, counted } from "../text/words";
import { allEntries, type Effect, type Part, partsOf } from "../timeline/journal";
import type { TimelineCall } from "../timeline/timeline";
import { Badge, Title, When } from "./bits";
import { Shown } from "./page";

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
  // The call has recorded something before each of its steps, and before its end. While it runs, it records more.
  useRefresh(loaded, `${call.attempt} ${call.state} ${call.waits.length}`, call.state === "running");
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
          <Title level={2}>{place(after)}</Title>
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
