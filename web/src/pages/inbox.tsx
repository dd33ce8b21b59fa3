// The inbox: all open suspensions, live.

import { ToggleButton, ToggleButtonGroup } from "react-aria-components";
import { useInbox } from "../host/inbox";
import { Filters } from "../parts/filters";
import { Page } from "../parts/page";
import "../parts/elements";
import { useQuery } from "../router";
import { useSession } from "../session";

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
        key={JSON.stringify(filter)}
        toolgate={host.toolgate}
        drafts={drafts}
        heading-level="2"
        {...(isAll ? { store } : filter)}
      />
    </Page>
  );
}
