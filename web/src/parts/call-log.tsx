// The log of a call, which is read when somebody opens it.

import { useLoad, useRefresh } from "../host/load";
import { useSession } from "../session";
import { shown, shownLines } from "../text/shown";
import { counted, moment } from "../text/words";
import { type Line, type Run, runsOf } from "../timeline/log";
import type { TimelineCall } from "../timeline/timeline";
import { Title } from "./bits";
import { Shown } from "./page";

export function CallLog({ conversation, call }: { conversation: string; call: TimelineCall }) {
  const { host } = useSession();
  const loaded = useLoad(`log ${conversation} ${call.id}`, (signal) =>
    host.toolgate.callLog(conversation, call.id, signal),
  );
  // The host stores the last lines with the outcome.
  useRefresh(loaded, `${call.attempt} ${call.state}`);
  return <Shown loaded={loaded}>{({ runs }) => <Runs runs={runsOf(runs, call.log)} />}</Shown>;
}

export function Runs({ runs }: { runs: Run[] }) {
  if (runs.length === 0) return <p className="call-line">This call has no log lines.</p>;
  return runs.map(({ run, lines, missing }) => (
    <section key={run} aria-label={`Log of run ${run}`}>
      <Title level={2}>Run {run}</Title>
      <ol className="code log">
        {lines.map((line) => (
          <LogLine key={line.line} line={line} />
        ))}
        {missing > 0 && <Missing count={missing} />}
      </ol>
    </section>
  ));
}

function LogLine({ line: { line, level, message, at, missing } }: { line: Line }) {
  return (
    <>
      {missing > 0 && <Missing count={missing} />}
      <li className={`log-line log-${shown(level)}`} title={at && moment(at)}>
        <span className="log-number">{line}</span>
        <span className="log-level">{shown(level)}</span>
        {/* A message of several lines stays in its column, so that it cannot forge a line of the log. */}
        <span className="log-message" dir="auto">
          {shownLines(message)}
        </span>
      </li>
    </>
  );
}

function Missing({ count }: { count: number }) {
  return <li className="log-missing">{counted(count, "line")} not kept or not yet read</li>;
}
