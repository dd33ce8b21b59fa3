// The inbox: all open suspensions, live, and a list of those that have ended.

import type { ToolgateInbox } from "@toolgate/web/elements";
import { useEffect, useRef } from "react";
import { ToggleButton, ToggleButtonGroup } from "react-aria-components";
import { useInbox } from "../host/inbox";
import { EndedList } from "../parts/ended-list";
import { Filters } from "../parts/filters";
import { Page } from "../parts/page";
import "../parts/elements";
import { useQuery } from "../router";
import { useSession } from "../session";
import { isShortcut } from "../shell/shortcut";

const FILTERS = [
  { name: "conversation", label: "Conversation" },
  { name: "tool", label: "Tool" },
  { name: "caller", label: "Caller" },
  { name: "call", label: "Call", hint: "with its conversation" },
];

/** Filters for suspensions that have ended. */
const END_FILTERS = [
  { name: "decision", label: "Decision", hint: "approve" },
  { name: "by", label: "Answered by" },
];

const STATES = [
  ["open", "Waiting"],
  ["closed", "Ended"],
] as const;

const KINDS = [
  ["all", "All"],
  ["mine", "For me"],
  ["approval", "Approvals"],
  ["elicitation", "Questions"],
] as const;

export function Inbox() {
  const [query, change] = useQuery();
  const isOver = query.get("state") === "closed" || END_FILTERS.some(({ name }) => query.has(name));
  const filters = isOver ? [...FILTERS, ...END_FILTERS] : FILTERS;
  const kinds = KINDS.filter(([id]) => !isOver || id !== "mine");
  const isMine = query.get("mine") === "true" && !isOver;
  const kind = query.get("kind") ?? (isMine ? "mine" : "all");
  const choose = (chosen: string) =>
    change({
      kind: chosen === "all" || chosen === "mine" ? "" : chosen,
      mine: chosen === "mine" ? "true" : "",
    });
  const show = (state: string) =>
    change(state === "closed" ? { state, mine: "" } : { state: "", decision: "", by: "" });
  const names = [...filters.map(({ name }) => name), "kind"];
  const filter = Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(name);
      return value ? [[name, value]] : [];
    }),
  );
  return (
    <Page
      title="Inbox"
      aside={
        <>
          <Choice label="Waiting or ended" all={STATES} chosen={isOver ? "closed" : "open"} choose={show} />
          <Choice label="Filter by kind" all={kinds} chosen={kind} choose={choose} />
        </>
      }
    >
      <details className="more-filters" open={filters.some(({ name }) => query.has(name))}>
        <summary>Filter</summary>
        <Filters filters={filters} />
      </details>
      {isOver ? <EndedList filter={filter} /> : <Open filter={isMine ? { ...filter, mine: "" } : filter} />}
    </Page>
  );
}

/** One of several choices, as buttons. */
function Choice(props: {
  label: string;
  all: readonly (readonly [id: string, name: string])[];
  chosen: string;
  choose: (id: string) => void;
}) {
  return (
    <ToggleButtonGroup
      className="choices"
      aria-label={props.label}
      selectionMode="single"
      disallowEmptySelection
      selectedKeys={[props.chosen]}
      onSelectionChange={([chosen]) => props.choose(String(chosen))}
    >
      {props.all.map(([id, name]) => (
        <ToggleButton key={id} id={id} className="choice">
          {name}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}

/** The cards of the open suspensions. */
function Open({ filter }: { filter: Record<string, string> }) {
  const { host } = useSession();
  const { store, drafts } = useInbox();
  const inbox = useRef<ToolgateInbox>(null);
  useMoves(inbox);
  // Without a filter, the page shares the console's stream, because a browser has few connections.
  const isAll = Object.keys(filter).length === 0;
  return (
    <toolgate-inbox
      ref={inbox}
      key={JSON.stringify(filter)}
      toolgate={host.toolgate}
      drafts={drafts}
      heading-level="2"
      {...(isAll ? { store } : filter)}
    />
  );
}

/** `j` and `k` enter the inbox from anywhere on the page, for example after the log-in. Inside it, the element handles them. */
function useMoves(inbox: { current: ToolgateInbox | null }) {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || !isShortcut(event) || (event.key !== "j" && event.key !== "k")) return;
      event.preventDefault();
      inbox.current?.move(event.key === "j" ? 1 : -1);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [inbox]);
}
