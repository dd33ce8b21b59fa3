// A turn of a conversation: the calls of one model response.

import { type Nested, type Parent, shownChanges, type Turn as TurnJson } from "@toolgate/web";
import { useContext, useState } from "react";
import { Button, Disclosure, DisclosurePanel, Link, ProgressBar } from "react-aria-components";
import { useLoad, useRefresh } from "../host/load";
import { useSession } from "../session";
import { shown, shownLines } from "../text/shown";
import { approvals, bytes, counted, span, through } from "../text/words";
import { callsOf, type Step, type TimelineCall, type TimelineTurn, type Wait } from "../timeline/timeline";
import {
  Badge,
  Depth,
  Digest,
  END_TONES,
  Facts,
  Names,
  Strange,
  Title,
  type Tone,
  TurnLink,
  When,
} from "./bits";
import { CallLog } from "./call-log";
import { Journal } from "./journal";
import { JsonTree } from "./json-tree";
import { Shown, Unreadable } from "./page";

const TURN_TONES: Record<TimelineTurn["state"], Tone> = {
  open: "accent",
  settled: "good",
  aborted: "bad",
  cancelled: "plain",
  unknown: "bad",
};

export function Turn({ conversation, turn }: { conversation: string; turn: TimelineTurn }) {
  return (
    <li className="turn" id={turn.id} ref={isNamed(turn.id) ? scrollTo : undefined}>
      <header className="turn-head">
        <h2>
          {turn.startedAt ? <When at={turn.startedAt} /> : "Turn"}{" "}
          {turn.caller === undefined ? (
            <Strange>{turn.id}</Strange>
          ) : (
            <>
              <span className="by">by</span> <Strange>{turn.caller}</Strange>
            </>
          )}
        </h2>
        <span className="turn-aside">
          {turn.caller !== undefined && counted(turn.calls.length, "call")}
          <Badge tone={TURN_TONES[turn.state]}>{turn.state}</Badge>
          {turn.cancelledBy && (
            <span>
              cancelled by <Strange>{turn.cancelledBy}</Strange>
            </span>
          )}
        </span>
      </header>
      {turn.parent && <Through parent={turn.parent} />}
      {turn.context !== undefined && (
        <Fold title="Context" level={0}>
          <JsonTree value={turn.context} label="Context of the turn" />
        </Fold>
      )}
      <ol className="calls">
        {turn.calls.map((call) => (
          <Call key={call.id} conversation={conversation} call={call} />
        ))}
      </ol>
      <Unreadable count={turn.unreadable} />
    </li>
  );
}

/** The same function for each render, so that it is called once. */
const scrollTo = (item: HTMLElement | null) => item?.scrollIntoView();

/** Whether the address names this turn. */
export const isNamed = (turn: string) => location.hash === `#${encodeURIComponent(turn)}`;

/** The call that submitted a nested turn. */
function Through({ parent: { conversation, turn, plugin, tool } }: { parent: Parent }) {
  return (
    <p className="call-line">
      Called by <Strange>{tool}</Strange> of the plugin <Strange>{plugin}</Strange>, which chose the tools and
      the arguments, in <TurnLink conversation={conversation} turn={turn} />
    </p>
  );
}

/** The state of a call as a word and a tone. */
export function standing(call: TimelineCall): { word: string; tone: Tone } {
  switch (call.state) {
    case "awaiting":
      return { word: "waiting", tone: "waiting" };
    case "running":
      return { word: "running", tone: "accent" };
    case "requested":
      return { word: "requested", tone: "plain" };
    case "settled": {
      const word = (call.outcome ?? "settled").replaceAll("_", " ");
      const quiet = ["cancelled", "cancelled_by_sibling", "unavailable"].includes(call.outcome ?? "");
      return { word, tone: call.outcome === "ok" ? "good" : quiet ? "plain" : "bad" };
    }
  }
}

function Call({ conversation, call }: { conversation: string; call: TimelineCall }) {
  const { word, tone } = standing(call);
  return (
    <li className={`call call-${tone}`}>
      <header className="call-head">
        <Title level={0}>
          <code>
            <Strange>{call.tool}</Strange>
          </code>
        </Title>
        {call.plugin && (
          <span className="call-plugin">
            <Strange>{call.plugin}</Strange>
          </span>
        )}
        <span className="call-state">
          {call.plugin?.startsWith("mcp:") && <Badge tone="waiting">outside the sandbox</Badge>}
          {call.executor && call.executor !== "server" && <Badge>{call.executor}</Badge>}
          {call.gated && <Badge>needs approval</Badge>}
          {call.attempt > 1 && <Badge tone="waiting">attempt {call.attempt}</Badge>}
          <Badge tone={tone}>{word}</Badge>
        </span>
      </header>
      <Progress call={call} />
      {call.standing && (
        <p className="call-line">
          Approved by the standing approval <code>{call.standing}</code>
        </p>
      )}
      {call.nested?.map((nested) => (
        <div key={nested.turn} className="wait">
          <Calls nested={nested} />
        </div>
      ))}
      {call.waits.map((wait) => (
        <Waited key={wait.suspension} wait={wait} />
      ))}
      <Result call={call} />
      <Fold title={call.submitted === undefined ? "Arguments" : "Approved arguments, and as submitted"}>
        <JsonTree
          value={call.arguments}
          label={call.submitted === undefined ? "Arguments" : "Approved arguments"}
        />
        {call.submitted !== undefined && (
          <>
            <Title level={1}>Arguments as submitted</Title>
            <JsonTree value={call.submitted} label="Arguments as submitted" />
          </>
        )}
      </Fold>
      {(call.attempt > 0 || call.log.length > 0) && (
        <Read title="Log">{() => <CallLog conversation={conversation} call={call} />}</Read>
      )}
      {isDurable(call) && (
        <Read title="Journal">{() => <Journal conversation={conversation} call={call} />}</Read>
      )}
      <More call={call} />
    </li>
  );
}

function Progress({ call }: { call: TimelineCall }) {
  if (call.state !== "running") return null;
  const { message, fraction } = call.progress ?? { message: "" };
  const known = typeof fraction === "number";
  return (
    <ProgressBar
      className="progress"
      aria-label={`Progress of ${shown(call.tool)}`}
      {...(known ? { value: fraction * 100 } : { isIndeterminate: true })}
    >
      {({ percentage, valueText }) => (
        <>
          <div className="progress-words">
            <span>{message ? <Strange>{message}</Strange> : "Running"}</span>
            {known && <span>{valueText}</span>}
          </div>
          <div className="progress-track">
            <div
              className={known ? "progress-fill" : "progress-fill progress-unknown"}
              style={known ? { width: `${percentage}%` } : {}}
            />
          </div>
        </>
      )}
    </ProgressBar>
  );
}

const KINDS: Record<string, string> = {
  approval: "Approval",
  elicitation: "Question",
  client_exec: "Client call",
  timer: "Sleep",
  external: "External wait",
  rate_limit: "Rate limit",
  children: "Nested turn",
};

const ASKS_NOBODY = new Set(["timer", "external", "rate_limit", "children"]);

/** The kinds that a person can answer. */
export const isAnswerable = (kind: string) => kind === "approval" || kind === "elicitation";

function Waited({ wait }: { wait: Wait }) {
  const { asked, end } = wait;
  return (
    <div className={end ? "wait" : "wait wait-open"}>
      <p className="call-line">
        <strong>{KINDS[wait.kind] ?? wait.kind}</strong>
        {wait.step !== undefined && ` (step ${wait.step})`} {wait.signal && `(signal ${wait.signal}) `}
        {ASKS_NOBODY.has(wait.kind) ? "since" : "asked"} <When at={wait.openedAt} />
        {!end && (
          <>
            , until <When at={wait.expiresAt} />.{" "}
            {isAnswerable(wait.kind) && (
              <Link className="link" href={`/suspensions/${encodeURIComponent(wait.suspension)}`}>
                Answer
              </Link>
            )}
          </>
        )}
      </p>
      {wait.prompt && (
        <blockquote className="wait-prompt" dir="auto">
          {shownLines(wait.prompt)}
        </blockquote>
      )}
      {wait.nested && <Calls nested={{ ...wait.nested, open: !end }} />}
      {wait.step !== undefined && wait.kind === "approval" && (
        <JsonTree value={asked} label="The value to decide about" />
      )}
      <ul className="steps">
        {wait.steps.map((step, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: steps are only added at the end.
          <li key={index}>
            <StepLine step={step} />
            <Edit of={step} asked={asked} />
          </li>
        ))}
        {end && (
          <li>
            <Badge tone={END_TONES[end.state] ?? "plain"}>{end.state}</Badge> by <Strange>{end.by}</Strange>
            {through(end.via)}
            {end.arguments !== undefined && " with edited arguments"} {end.at && <When at={end.at} />}
            {end.comment && <Comment text={end.comment} />}
            <Edit of={end} asked={asked} />
            {end.data !== undefined && <JsonTree value={end.data} label="The answer" />}
          </li>
        )}
        {wait.resumed && (
          <li>
            The call goes on (run {wait.resumed.run}) {wait.resumed.at && <When at={wait.resumed.at} />}
          </li>
        )}
      </ul>
    </div>
  );
}

/** How deep nested turns are shown below a call. Deeper ones have a link. */
const MAX_DEPTH = 4;

/** The nested turn of a call: its tools, and its calls when somebody opens them. */
function Calls({ nested }: { nested: Nested }) {
  const depth = useContext(Depth);
  const { conversation, turn, tools } = nested;
  return (
    <>
      <p className="call-line">
        Calls <Names of={[...new Set(tools)]} /> in <TurnLink conversation={conversation} turn={turn} />
      </p>
      {depth < MAX_DEPTH && (
        <Read title={counted(tools.length, "nested call")}>
          {() => (
            <Depth value={depth + 1}>
              <NestedCalls nested={nested} />
            </Depth>
          )}
        </Read>
      )}
    </>
  );
}

/** The calls of a nested turn. The stream of the conversation does not have its events. */
function NestedCalls({ nested: { conversation, turn, tools, open } }: { nested: Nested }) {
  const { host } = useSession();
  const path = `/v1/conversations/${encodeURIComponent(conversation)}/turns/${encodeURIComponent(turn)}`;
  const loaded = useLoad(path, (signal) => host.get<TurnJson>(path, { signal }));
  useRefresh(loaded, String(open), open || loaded.value?.state === "open");
  return (
    <Shown loaded={loaded} rows={Math.min(tools.length, 3)}>
      {(read) => (
        <ol className="calls">
          {callsOf(read).map((call) => (
            <Call key={call.id} conversation={conversation} call={call} />
          ))}
        </ol>
      )}
    </Shown>
  );
}

function StepLine({ step }: { step: Step }) {
  const to = step.to ? <Strange>{step.to}</Strange> : null;
  return (
    <>
      {step.what === "voted" && (
        <>
          <Strange>{step.by}</Strange>
          {through(step.via)} approved{step.arguments !== undefined && " with edited arguments"}
          {step.needs?.map((need) => `, ${approvals(need)}`)}: the call still waits
        </>
      )}
      {step.what === "delegated" && (
        <>
          <Strange>{step.by}</Strange>
          {through(step.via)} delegated to {to}
        </>
      )}
      {step.what === "revoked" && <>{to} was revoked, so its votes and delegations no longer count</>}
      {step.what === "escalated" && <>Nobody answered in time; {to ?? "others"} may answer as well</>}{" "}
      {step.at && <When at={step.at} />}
      {step.comment && <Comment text={step.comment} />}
    </>
  );
}

const SIGNS = { same: " ", removed: "−", added: "+" };

/** The changes of an approver's edit. */
function Edit({ of, asked }: { of: { by: string; arguments?: unknown }; asked: unknown }) {
  if (of.arguments === undefined) return null;
  return (
    <ol className="code diff" dir="ltr" aria-label={`Changes by ${shown(of.by)}`}>
      {shownChanges(asked, of.arguments).map(({ kind, text }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are those of one text, which does not change.
        <li key={index} className={`diff-${kind}`}>
          <span aria-hidden="true">{SIGNS[kind]} </span>
          {kind !== "same" && <span className="visually-hidden">{kind}: </span>}
          {text}
        </li>
      ))}
    </ol>
  );
}

function Comment({ text }: { text: string }) {
  return (
    <q className="comment" dir="auto">
      {shownLines(text)}
    </q>
  );
}

function Result({ call }: { call: TimelineCall }) {
  if (!call.content) return null;
  const { ok, result, error } = call.content;
  return (
    <div className="result">
      {call.trusted === false && (
        <p className="call-line">
          <Badge tone="waiting">not trusted</Badge> It is from somebody outside of the host, or may contain
          what somebody outside sent.
        </p>
      )}
      {ok ? (
        <JsonTree value={result} label="Result" />
      ) : (
        <p className="result-error">
          <code>{error?.code}</code> {error && <span dir="auto">{shownLines(error.message)}</span>}
        </p>
      )}
    </div>
  );
}

function More({ call }: { call: TimelineCall }) {
  const { receipt } = call;
  return (
    <Fold title="Details">
      <Facts
        rows={[
          ["Call", <Strange key="call">{call.id}</Strange>],
          [
            "Component",
            call.component && <Digest key="component" of={call.component} label="digest of the component" />,
          ],
          ["Took", receipt && span(receipt.time_us / 1000)],
          ["Memory", receipt && bytes(receipt.peak_memory_bytes)],
          ["Host calls", receipt && String(receipt.host_calls)],
          [
            "Journal",
            receipt?.journal &&
              `${counted(receipt.journal.entries, "entry", "entries")}, ${bytes(receipt.journal.bytes)}`,
          ],
          [
            "Digest of the journal",
            receipt?.journal && (
              <Digest key="journal" of={receipt.journal.digest} label="digest of the journal" />
            ),
          ],
          ["Ended", call.settledAt && <When key="ended" at={call.settledAt} />],
        ]}
      />
    </Fold>
  );
}

/** Whether the call has waited in the middle of its code, or has recorded something. */
function isDurable({ waits, nested, receipt }: TimelineCall): boolean {
  return (
    waits.some(({ step }) => step !== undefined) || (nested ?? []).length > 0 || receipt?.journal != null
  );
}

/** Content that is read when somebody opens it, and again when it is opened again. */
function Read({ title, children }: { title: string; children: () => React.ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Fold title={title} onExpandedChange={setOpen}>
      {isOpen && children()}
    </Fold>
  );
}

interface FoldProps {
  title: string;
  level?: number;
  onExpandedChange?: (isOpen: boolean) => void;
  children: React.ReactNode;
}

function Fold({ title, level = 1, onExpandedChange, children }: FoldProps) {
  return (
    <Disclosure className="fold" {...(onExpandedChange && { onExpandedChange })}>
      <Title level={level}>
        <Button slot="trigger" className="fold-button">
          <span className="json-arrow" aria-hidden="true" />
          {title}
        </Button>
      </Title>
      <DisclosurePanel className="fold-panel">{children}</DisclosurePanel>
    </Disclosure>
  );
}
