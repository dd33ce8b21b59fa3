// The suspensions that have ended: how, by whom and when.

import type { PendingPage, Suspension, UnreadableSuspension } from "@toolgate/web";
import { Link } from "react-aria-components";
import { useSession } from "../session";
import { ConversationLink, Ended, Strange } from "./bits";
import { Empty, Skeleton, Trouble, Unreadable } from "./page";
import { More, usePages } from "./pages";

type Item = Suspension | UnreadableSuspension;

const isReadable = (item: Item): item is Suspension => "kind" in item;

export function EndedList({ filter }: { filter: Record<string, string> }) {
  const { host } = useSession();
  const pages = usePages(JSON.stringify(filter), async (after: string | undefined, signal) => {
    const query = { ...filter, state: "closed", after, limit: 100 };
    const page = await host.get<PendingPage>("/v1/pending", { query, signal });
    const items: Item[] = [...page.suspensions, ...(page.unreadable ?? [])];
    return { items, next: page.next ?? undefined };
  });
  const ended = pages.items.filter(isReadable);
  return (
    <>
      <Unreadable count={pages.items.length - ended.length} />
      {ended.length > 0 && (
        <ul className="rows" aria-label="Ended, oldest first">
          {ended.map((item) => (
            <Row key={item.suspension} item={item} />
          ))}
        </ul>
      )}
      {pages.error && <Trouble error={pages.error} again={pages.again} />}
      {pages.loading && pages.items.length === 0 && <Skeleton rows={5} />}
      {!pages.loading && !pages.error && pages.items.length === 0 && !pages.hasMore && (
        <Empty title="Nothing matches" />
      )}
      <More pages={pages} />
    </>
  );
}

function Row({ item: { suspension, tool, caller, conversation, closed } }: { item: Suspension }) {
  return (
    <li className="row">
      <span>
        <Link className="link" href={`/suspensions/${encodeURIComponent(suspension)}`}>
          <code>
            <Strange>{tool}</Strange>
          </code>
        </Link>{" "}
        for <Strange>{caller}</Strange> in <ConversationLink id={conversation} />
      </span>
      {closed && (
        <span className="row-end">
          <Ended closed={closed} />
          {closed.arguments !== undefined && ", with edited arguments"}
          {closed.comment && (
            <q className="comment">
              <Strange>{closed.comment}</Strange>
            </q>
          )}
        </span>
      )}
    </li>
  );
}
