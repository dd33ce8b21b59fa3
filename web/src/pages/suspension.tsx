// The page of one suspension. Links of webhooks and one-time links lead here, and it stays readable after the end.

import type { Suspension as Asked, Delivery } from "@toolgate/web";
import { ToolgateApproval, ToolgateClientCall, ToolgateElicitation } from "@toolgate/web/elements";
import { Fragment, useEffect, useRef } from "react";
import { useInbox } from "../host/inbox";
import { useLoad } from "../host/load";
import { Badge, ConversationLink, Ended, Facts, Strange, type Tone, TurnLink, When } from "../parts/bits";
import { JsonTree } from "../parts/json-tree";
import { Page, Shown } from "../parts/page";
import { useSession } from "../session";
import { shownLines } from "../text/shown";

const TITLES: Record<string, string> = {
  approval: "Approval",
  elicitation: "Question",
  client_exec: "Client call",
  timer: "Sleep",
  external: "External wait",
  rate_limit: "Rate limit",
  children: "Nested turn",
};

/** The reason for a wait where no person answers. */
const OTHERS: Record<string, string> = {
  timer: "The call sleeps.",
  external: "An external system sends the result.",
  rate_limit: "A server has asked to send a request later.",
  children: "The call waits for the calls of a nested turn.",
};

export function Suspension({ id }: { id: string }) {
  const { host, session } = useSession();
  const loaded = useLoad(id, (signal) =>
    host.get<Asked>(`/v1/suspensions/${encodeURIComponent(id)}`, { signal }),
  );
  useNews(id, loaded.value, loaded.reload);
  return (
    <Page title={TITLES[loaded.value?.kind ?? ""] ?? "Question"}>
      <Shown loaded={loaded} rows={2}>
        {(asked) => (
          <>
            <Card asked={asked} />
            {session.only == null && <Around asked={asked} />}
          </>
        )}
      </Shown>
    </Page>
  );
}

/** Milliseconds between checks of the webhook deliveries, because no event reports them. */
const LOOK = 3000;

/** Reloads the suspension when it changes, and while a webhook delivery is pending. */
function useNews(id: string, asked: Asked | undefined, reload: () => void) {
  const { store } = useInbox();
  useEffect(
    () =>
      store.subscribe((change) => {
        const of =
          change.type === "closed" ? change.id : "suspension" in change && change.suspension.suspension;
        if (of === id) reload();
      }),
    [store, id, reload],
  );
  useEffect(() => {
    if (!asked?.deliveries?.some(({ state }) => state === "pending")) return undefined;
    const timer = setTimeout(reload, LOOK);
    return () => clearTimeout(timer);
  }, [asked, reload]);
}

function Card({ asked }: { asked: Asked }) {
  const { kind, suspension, state } = asked;
  const Element = ELEMENTS[kind];
  if (Element !== undefined) return <Followed id={suspension} of={Element} />;
  return (
    <p className="card">
      {OTHERS[kind] ?? "The call waits."} <Badge>{state}</Badge>
    </p>
  );
}

type Element = new () => ToolgateApproval | ToolgateElicitation | ToolgateClientCall;

const ELEMENTS: Record<string, Element> = {
  approval: ToolgateApproval,
  elicitation: ToolgateElicitation,
  client_exec: ToolgateClientCall,
};

/** A card that follows its suspension. Like the inbox, it keeps input that was not sent. */
function Followed({ id, of: Element }: { id: string; of: Element }) {
  const { host, session, drafts } = useSession();
  const { store } = useInbox();
  const place = useRef<HTMLDivElement>(null);
  // The host refuses the stream for a one-time link's session, so the card polls.
  const isByLink = session.only != null;
  useEffect(() => {
    const draft = drafts.get(id);
    drafts.delete(id);
    const card = draft ?? new Element();
    card.isKept = false;
    card.complain("");
    card.toolgate = host.toolgate;
    card.store = isByLink ? undefined : store;
    card.setAttribute("suspension-id", id);
    card.setAttribute("heading-level", "2");
    place.current?.append(card);
    return () => {
      card.isKept = card.isBegun;
      if (card.isKept) drafts.set(id, card);
      card.remove();
    };
  }, [id, Element, host, store, drafts, isByLink]);
  return <div ref={place} />;
}

/** The parts that the card does not show: the end, the conversation, and the deliveries. */
function Around({ asked }: { asked: Asked }) {
  const { closed, deliveries } = asked;
  return (
    <section className="card" aria-label="Details">
      <Facts
        rows={[
          ["Conversation", <ConversationLink key="conversation" id={asked.conversation} />],
          ["Caller", <Strange key="caller">{asked.caller}</Strange>],
          [
            "Through",
            asked.parent && (
              <Fragment key="parent">
                <Strange>{`${asked.parent.tool} of the plugin ${asked.parent.plugin}, which chose the arguments`}</Strange>
                , in <TurnLink conversation={asked.parent.conversation} turn={asked.parent.turn} />
              </Fragment>
            ),
          ],
          ["Nested turn", asked.nested && <TurnLink key="nested" {...asked.nested} />],
          ["Asked", <When key="asked" at={asked.created_at} />],
          [
            "Ended",
            closed && (
              <>
                <Ended closed={closed} />
                {closed.comment && <q className="comment">{shownLines(closed.comment)}</q>}
              </>
            ),
          ],
          [
            "Answer",
            closed?.data !== undefined && <JsonTree key="data" value={closed.data} label="Answer" />,
          ],
        ]}
      />
      {deliveries && deliveries.length > 0 && <Notifications deliveries={deliveries} />}
    </section>
  );
}

const TONES: Record<Delivery["state"], Tone> = { pending: "waiting", delivered: "good", failed: "bad" };

/** The webhook deliveries. */
function Notifications({ deliveries }: { deliveries: Delivery[] }) {
  return (
    <div>
      <h3>Notifications</h3>
      <ul className="lines">
        {deliveries.map((delivery) => (
          <li key={`${delivery.webhook} ${delivery.event}`}>
            <Badge tone={TONES[delivery.state]}>{delivery.state}</Badge> {delivery.event} to{" "}
            <Strange>{delivery.webhook}</Strange>, <When at={delivery.at} />
            {delivery.last_status != null && `, answered ${delivery.last_status}`}
            {delivery.attempts > 1 && `, ${delivery.attempts} attempts`}
            {delivery.last_error && (
              <q className="comment">
                <Strange>{delivery.last_error}</Strange>
              </q>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
