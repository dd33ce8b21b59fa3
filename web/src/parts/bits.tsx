// Small components of many pages.

import type { Closed } from "@toolgate/web";
import { createContext, Fragment, type ReactNode, useContext, useState } from "react";
import { Button, Heading, Link } from "react-aria-components";
import { failed } from "../shell/notices";
import { shown } from "../text/shown";
import { moment, shortMoment, through } from "../text/words";

/** Untrusted text on one line: escaped, and isolated from the direction of the text beside it. */
export function Strange({ children }: { children: string }) {
  return <bdi>{shown(children)}</bdi>;
}

/** Names in a sentence: “ann, bob and cy”. */
export function Names({ of }: { of: string[] }) {
  return of.map((name, index) => (
    <Fragment key={name}>
      {index > 0 && (index === of.length - 1 ? " and " : ", ")}
      <Strange>{name}</Strange>
    </Fragment>
  ));
}

/** How deep a call is nested on the page: 0 in the timeline. */
export const Depth = createContext(0);

/** A heading within a call. The name of the call has level 0. */
export function Title({ level, children }: { level: number; children: ReactNode }) {
  const depth = useContext(Depth);
  // In the timeline, a call is below the `h2` of its turn.
  return <Heading level={Math.min(3 + 2 * depth + level, 6)}>{children}</Heading>;
}

/** How a suspension ended, and by whom. */
export function Ended({ closed: { state, by, approvers, via, at } }: { closed: Closed }) {
  return (
    <>
      <Badge tone={END_TONES[state] ?? "plain"}>{state}</Badge> by{" "}
      <Names of={approvers?.length ? approvers : [by]} />
      {through(via)}, <When at={at} />
    </>
  );
}

export const END_TONES: Record<string, Tone> = {
  approve: "good",
  answer: "good",
  result: "good",
  deny: "bad",
  error: "bad",
  expired: "waiting",
};

export type Tone = "plain" | "good" | "bad" | "waiting" | "accent";

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge badge-${tone}`}>{children}</span>;
}

/** A time. The tooltip and the markup have it in full. */
export function When({ at }: { at: string }) {
  return (
    <time dateTime={at} title={moment(at)}>
      {shortMoment(at)}
    </time>
  );
}

/** A digest: its beginning, and all of it after a press. */
export function Digest({ of, label }: { of: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const [open, setOpen] = useState(false);
  const text = of.replace(/^sha256:/, "");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(of);
      setCopied(true);
    } catch (error) {
      failed("Could not copy", error);
    }
  };
  return (
    <span className="digest">
      <Button className="digest-text" aria-expanded={open} onPress={() => setOpen(!open)}>
        <span className="visually-hidden">{label} </span>
        <code>{open ? of : `${text.slice(0, 12)}…`}</code>
      </Button>
      <Button className="digest-copy" onPress={copy}>
        {copied ? "copied" : "copy"} <span className="visually-hidden">the {label}</span>
      </Button>
    </span>
  );
}

export function ConversationLink({ id }: { id: string }) {
  return (
    <Link className="link" href={`/conversations/${encodeURIComponent(id)}`}>
      <Strange>{id}</Strange>
    </Link>
  );
}

/** A turn in the timeline of its conversation. */
export function TurnLink({ conversation, turn }: { conversation: string; turn: string }) {
  return (
    <Link
      className="link"
      href={`/conversations/${encodeURIComponent(conversation)}#${encodeURIComponent(turn)}`}
    >
      <Strange>{turn}</Strange>
    </Link>
  );
}

/** Rows of a name and a value. */
export function Facts({ rows }: { rows: [name: string, value: ReactNode][] }) {
  return (
    <dl className="facts">
      {rows
        .filter(([, value]) => value !== undefined && value !== null && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
