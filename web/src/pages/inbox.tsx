// The inbox: all open suspensions, live.

import type { ToolgateInbox } from "@toolgate/web/elements";
import { useEffect, useRef } from "react";
import { ToggleButton, ToggleButtonGroup } from "react-aria-components";
import { useInbox } from "../host/inbox";
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
];

const KINDS = [
  ["all", "All"],
  ["mine", "For me"],
  ["approval", "Approvals"],
  ["elicitation", "Questions"],
] as const;

export function Inbox() {
  const { host } = useSession();
  const { store, drafts } = useInbox();
  const [query, change] = useQuery();
  const kind = query.get("kind") ?? (query.get("mine") === "true" ? "mine" : "all");
  const choose = (chosen: string) =>
    change({
      kind: chosen === "all" || chosen === "mine" ? "" : chosen,
      mine: chosen === "mine" ? "true" : "",
    });
  const filter = Object.fromEntries(
    [...FILTERS.map(({ name }) => name), "kind", "mine"].flatMap((name) => {
      const value = query.get(name);
      return value ? [[name, name === "mine" ? "" : value]] : [];
    }),
  );
  const inbox = useRef<ToolgateInbox>(null);
  useMoves(inbox);
  // Without a filter, the page shares the console's stream, because a browser has few connections.
  const isAll = Object.keys(filter).length === 0;
  return (
    <Page
      title="Inbox"
      aside={
        <ToggleButtonGroup
          className="choices"
          aria-label="Filter by kind"
          selectionMode="single"
          disallowEmptySelection
          selectedKeys={[kind]}
          onSelectionChange={([chosen]) => choose(String(chosen))}
        >
          {KINDS.map(([id, name]) => (
            <ToggleButton key={id} id={id} className="choice">
              {name}
            </ToggleButton>
          ))}
        </ToggleButtonGroup>
      }
    >
      <details className="more-filters" open={FILTERS.some(({ name }) => query.has(name))}>
        <summary>Filter</summary>
        <Filters filters={FILTERS} />
      </details>
      <toolgate-inbox
        ref={inbox}
        key={JSON.stringify(filter)}
        toolgate={host.toolgate}
        drafts={drafts}
        heading-level="2"
        {...(isAll ? { store } : filter)}
      />
    </Page>
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
