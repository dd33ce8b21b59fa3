// Standing approvals: what somebody approved for later calls too, and the way to take it back.

import type { StandingApproval as Standing } from "@toolgate/web";
import { useState } from "react";
import { Button, Dialog, DialogTrigger, Heading, Modal, ModalOverlay } from "react-aria-components";
import { useLoad } from "../host/load";
import { Badge, Digest, Facts, Strange, type Tone, When } from "../parts/bits";
import { JsonTree } from "../parts/json-tree";
import { Empty, Page, Shown } from "../parts/page";
import { useSession } from "../session";
import { done, failed } from "../shell/notices";

const TONES: Record<Standing["state"], Tone> = {
  active: "good",
  used_up: "plain",
  expired: "plain",
  revoked: "bad",
};

export function StandingApprovals() {
  const { host } = useSession();
  const loaded = useLoad("standing", (signal) =>
    host.get<{ standing_approvals: Standing[] }>("/v1/standing-approvals", { signal }),
  );
  return (
    <Page
      title="Standing approvals"
      lead="Given while answering: later calls with the same arguments run without a question, for a while."
    >
      <Shown loaded={loaded}>
        {({ standing_approvals: all }) =>
          all.length === 0 ? (
            <Empty title="There is none">An approver gives one on the card of an approval.</Empty>
          ) : (
            <ul className="cards">
              {[...all].sort(activeFirst).map((standing) => (
                <StandingCard key={standing.id} standing={standing} changed={loaded.reload} />
              ))}
            </ul>
          )
        }
      </Shown>
    </Page>
  );
}

function activeFirst(one: Standing, other: Standing): number {
  const rank = ({ state }: Standing) => (state === "active" ? 0 : 1);
  return rank(one) - rank(other) || other.created_at.localeCompare(one.created_at);
}

function StandingCard({ standing, changed }: { standing: Standing; changed: () => void }) {
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
          ["Taken back", standing.revoked_by && <Strange>{standing.revoked_by}</Strange>],
          ["Pinned", <Strange key="pin">{pinned}</Strange>],
          ["Plugin", <Strange key="plugin">{standing.plugin}</Strange>],
          ["Component", <Digest key="component" of={standing.component} label="digest of the component" />],
        ]}
      />
      <JsonTree value={standing.arguments} label={`Arguments of ${standing.tool}`} />
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

function Revoke({ standing, changed }: { standing: Standing; changed: () => void }) {
  const { host } = useSession();
  const [busy, setBusy] = useState(false);
  const revoke = async (close: () => void) => {
    setBusy(true);
    try {
      await host.toolgate.revokeStandingApproval(standing.id);
      done("The approval was taken back");
      close();
      changed();
    } catch (error) {
      failed("The approval still stands", error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <DialogTrigger>
      <Button className="button card-act">Take back</Button>
      <ModalOverlay className="overlay" isDismissable>
        <Modal className="modal">
          <Dialog className="dialog" role="alertdialog">
            {({ close }) => (
              <>
                <Heading slot="title">Take back the approval of {standing.tool}?</Heading>
                <p>The next call asks again. Calls that already run are not stopped.</p>
                <div className="dialog-acts">
                  <Button className="button button-bad" isPending={busy} onPress={() => revoke(close)}>
                    Take back
                  </Button>
                  <Button slot="close" className="button" autoFocus>
                    Keep it
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
