// The audit: who did what, in the order of the log.

import { useId, useState } from "react";
import { Button } from "react-aria-components";
import { useLoad } from "../host/load";
import type { AuditEntry, AuditPage } from "../host/wire";
import { Badge, ConversationLink, Digest, Facts, Strange, When } from "../parts/bits";
import { Filters } from "../parts/filters";
import { JsonTree } from "../parts/json-tree";
import { Empty, Page, Skeleton, Trouble, Unreadable } from "../parts/page";
import { More, usePages } from "../parts/pages";
import { useQuery } from "../router";
import { useSession } from "../session";
import { through } from "../text/words";

const FILTERS = [
  { name: "conversation", label: "Conversation" },
  { name: "principal", label: "Principal" },
  { name: "plugin", label: "Plugin" },
  { name: "subject", label: "About" },
  { name: "event", label: "Event", hint: "approve" },
];

/** Members that the raw view leaves out, because the table or the details show them. */
const SHOWN_ELSEWHERE = [
  "position",
  "hash",
  "at",
  "by",
  "action",
  "conversation",
  "subject",
  "plugin",
  "outcome",
  "comment",
];

export function Audit() {
  const { host } = useSession();
  const [query] = useQuery();
  const filter = Object.fromEntries(FILTERS.map(({ name }) => [name, query.get(name) ?? undefined]));
  const key = JSON.stringify(filter);
  const pages = usePages(key, async (after: number | undefined, signal) => {
    const page = await host.get<AuditPage>("/v1/audit", { query: { ...filter, after, limit: 200 }, signal });
    return { items: page.entries, next: page.next ?? undefined };
  });
  return (
    <Page
      title="Audit"
      wide
      lead="Oldest first. Each entry is part of one hash chain."
      aside={<Checkpoint />}
    >
      <Filters filters={FILTERS} />
      <Unreadable count={pages.items.filter(isUnreadable).length} />
      {pages.items.length > 0 && <Entries entries={pages.items} />}
      {pages.error && <Trouble error={pages.error} again={pages.again} />}
      {pages.loading && pages.items.length === 0 && <Skeleton rows={8} />}
      {!pages.loading && !pages.error && pages.items.length === 0 && !pages.hasMore && (
        <Empty title="No matching entries" />
      )}
      <More pages={pages} />
    </Page>
  );
}

/** The checkpoint: keep it elsewhere to detect a change of earlier entries. */
function Checkpoint() {
  const { host } = useSession();
  const { value } = useLoad("audit-head", (signal) =>
    host.get<AuditPage>("/v1/audit", { query: { limit: 1 }, signal }),
  );
  if (!value) return null;
  return (
    <span className="head">
      checkpoint {value.head.position} <Digest of={value.head.hash} label="hash of the checkpoint" />
    </span>
  );
}

/** The host does not know when the damaged record was written. */
const isUnreadable = ({ action }: AuditEntry) => action === "record.unreadable";

function Entries({ entries }: { entries: AuditEntry[] }) {
  return (
    <table className="audit">
      <caption className="visually-hidden">Entries of the audit, oldest first</caption>
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Who</th>
          <th scope="col">What</th>
          <th scope="col">About</th>
          <th scope="col">Conversation</th>
          <th scope="col">
            <span className="visually-hidden">Details</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: entries of one commit share their position, and entries never move.
          <Entry key={`${entry.position} ${index}`} entry={entry} />
        ))}
      </tbody>
    </table>
  );
}

function Entry({ entry }: { entry: AuditEntry }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const bad = ["deny", "error", "expired", "plugin.rejected", "record.unreadable"].includes(entry.action);
  return (
    <>
      <tr className={open ? "audit-open" : ""}>
        <td data-label="When">{isUnreadable(entry) ? "unknown" : <When at={entry.at} />}</td>
        <td data-label="Who">
          <Strange>{entry.by}</Strange>
          {through(entry.via)}
        </td>
        <td data-label="What">
          <Badge tone={entry.action === "approve" ? "good" : bad ? "bad" : "plain"}>{entry.action}</Badge>{" "}
          {entry.outcome && <span className="outcome">{entry.outcome.replaceAll("_", " ")}</span>}
        </td>
        <td data-label="About">
          {entry.subject && (
            <code>
              <Strange>{entry.subject}</Strange>
            </code>
          )}
          {entry.action === "link.made" && typeof entry.to === "string" && (
            <>
              {" "}
              for <Strange>{entry.to}</Strange>
            </>
          )}
          {entry.comment && (
            <q className="comment">
              <Strange>{entry.comment}</Strange>
            </q>
          )}
        </td>
        <td data-label="Conversation">
          {entry.conversation && <ConversationLink id={entry.conversation} />}
        </td>
        <td className="audit-more">
          <Button
            className="button button-quiet"
            aria-expanded={open}
            aria-controls={id}
            onPress={() => setOpen(!open)}
          >
            {open ? "less" : "more"}
            <span className="visually-hidden"> about entry {entry.position}</span>
          </Button>
        </td>
      </tr>
      {open && (
        <tr id={id} className="audit-details">
          <td colSpan={6}>
            <Details entry={entry} />
          </td>
        </tr>
      )}
    </>
  );
}

function Details({ entry }: { entry: AuditEntry }) {
  const rest = Object.fromEntries(Object.entries(entry).filter(([name]) => !SHOWN_ELSEWHERE.includes(name)));
  return (
    <>
      <Facts
        rows={[
          ["Position", String(entry.position)],
          ["Hash", <Digest key="hash" of={entry.hash} label="hash" />],
          ["Plugin", entry.plugin && <Strange key="plugin">{entry.plugin}</Strange>],
        ]}
      />
      {Object.keys(rest).length > 0 && <JsonTree value={rest} label="The rest of the entry" />}
    </>
  );
}
