// Standing approvals: approvals that also cover later calls, and a button to revoke them.

import type { StandingApproval as Standing } from "@toolgate/web";
import { useState } from "react";
import { Button, Dialog, DialogTrigger, Heading, Modal, ModalOverlay } from "react-aria-components";
import { ActButton, useAct } from "../parts/act";
import { Badge, Digest, Facts, Strange, type Tone, When } from "../parts/bits";
import { JsonTree } from "../parts/json-tree";
import { Empty, Page, Skeleton, Trouble } from "../parts/page";
import { More, usePages } from "../parts/pages";
import { useSession } from "../session";
import { done, failed } from "../shell/notices";
import { shown } from "../text/shown";

const TONES: Record<Standing["state"], Tone> = {
  active: "good",
  used_up: "plain",
  expired: "plain",
  revoked: "bad",
};

export function StandingApprovals() {
  const { host } = useSession();
  // Approvals that were revoked here, in their new state. Reloading every page would move the list.
  const [revoked, setRevoked] = useState<ReadonlyMap<string, Standing>>(new Map());
  const pages = usePages("standing", async (after: string | undefined, signal) => {
    const page = await host.get<{ standing_approvals: Standing[]; next?: string | null }>(
      "/v1/standing-approvals",
      { query: { after }, signal },
    );
    return { items: page.standing_approvals, next: page.next ?? undefined };
  });
  const all = pages.items.map((one) => revoked.get(one.id) ?? one).sort(activeFirst);
  return (
    <Page
      title="Standing approvals"
      lead="Given with an answer: later calls with the same arguments run without asking, for a limited time."
    >
      {all.length > 0 && (
        <ul className="cards">
          {all.map((standing) => (
            <StandingCard
              key={standing.id}
              standing={standing}
              changed={(now) => setRevoked((before) => new Map(before).set(now.id, now))}
            />
          ))}
        </ul>
      )}
      {pages.error && <Trouble error={pages.error} again={pages.again} />}
      {pages.loading && all.length === 0 && <Skeleton />}
      {!pages.loading && !pages.error && all.length === 0 && !pages.hasMore && (
        <Empty title="No standing approvals">An approver gives one on the card of an approval.</Empty>
      )}
      {pages.hasMore && !pages.error && <p className="lead">More exist. Active ones are listed first.</p>}
      <More pages={pages} />
    </Page>
  );
}

function activeFirst(one: Standing, other: Standing): number {
  const rank = ({ state }: Standing) => (state === "active" ? 0 : 1);
  return rank(one) - rank(other) || other.created_at.localeCompare(one.created_at);
}

function StandingCard({ standing, changed }: { standing: Standing; changed: (now: Standing) => void }) {
  const pinned = standing.pin === "all" ? "all arguments" : standing.pin.join(", ");
  return (
    <li className="card">
      <header className="card-head">
        <h2>
          <code>
            <Strange>{standing.tool}</Strange>
          </code>
        </h2>
        <Badge tone={TONES[standing.state]}>{standing.state.replaceAll("_", " ")}</Badge>
        {standing.state === "active" && <Revoke standing={standing} changed={changed} />}
      </header>
      <Facts
        rows={[
          ["For", <Strange key="caller">{standing.caller}</Strange>],
          ["Used", `${standing.used} of ${standing.uses}`],
          ["Until", <When key="until" at={standing.expires_at} />],
          ["Given by", <Given key="by" standing={standing} />],
          ["Revoked", standing.revoked_by && <Strange>{standing.revoked_by}</Strange>],
          ["Pinned", <Strange key="pin">{pinned}</Strange>],
          ["Plugin", <Strange key="plugin">{standing.plugin}</Strange>],
          ["Component", <Digest key="component" of={standing.component} label="digest of the component" />],
        ]}
      />
      <JsonTree value={standing.arguments} label={`Arguments of ${shown(standing.tool)}`} />
    </li>
  );
}

function Given({ standing }: { standing: Standing }) {
  return (
    <>
      <Strange>{standing.by}</Strange>, <When at={standing.created_at} />
    </>
  );
}

function Revoke({ standing, changed }: { standing: Standing; changed: (now: Standing) => void }) {
  const { host } = useSession();
  const { busy, run } = useAct(async (close: () => void) => {
    try {
      const now = await host.toolgate.revokeStandingApproval(standing.id);
      done("The approval was revoked");
      close();
      changed(now);
    } catch (error) {
      failed("The approval was not revoked", error);
    }
  });
  return (
    <DialogTrigger>
      <Button className="button card-act">Revoke</Button>
      <ModalOverlay className="overlay" isDismissable>
        <Modal className="modal">
          <Dialog className="dialog" role="alertdialog">
            {({ close }) => (
              <>
                <Heading slot="title">Revoke the approval of {standing.tool}?</Heading>
                <p>The next call asks again. Calls that already run are not stopped.</p>
                <div className="dialog-acts">
                  <ActButton
                    className="button button-bad"
                    busy={busy}
                    doing="Revoking …"
                    onPress={() => run(close)}
                  >
                    Revoke
                  </ActButton>
                  <Button slot="close" className="button" autoFocus>
                    Keep
                  </Button>
                </div>
              </>
            )}
          </Dialog>
        </Modal>
      </ModalOverlay>
    </DialogTrigger>
  );
}
