// The keyboard shortcuts.

import { Button, Dialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import type { Place } from "../routes";

const IN_A_LIST: [string[], string][] = [
  [["j"], "the next question"],
  [["k"], "the previous question"],
  [["x"], "mark it, to answer several at once"],
  [["a"], "approve the focused approval"],
  [["d"], "deny"],
  [["e"], "change the arguments"],
  [["Esc"], "leave the text field"],
];

export function Keys({ isOpen, onClose, places }: { isOpen: boolean; onClose: () => void; places: Place[] }) {
  return (
    <ModalOverlay
      className="overlay"
      isOpen={isOpen}
      isDismissable
      onOpenChange={(open) => open || onClose()}
    >
      <Modal className="modal">
        <Dialog className="dialog">
          <Heading slot="title">Keys</Heading>
          <h3>Anywhere</h3>
          <Table
            rows={[
              ...places.map((place): [string[], string] => [["g", place.key ?? ""], place.name ?? ""]),
              [["?"], "these keys"],
            ]}
          />
          <h3>In the inbox</h3>
          <Table rows={IN_A_LIST} />
          <Button slot="close" className="button" autoFocus>
            Close
          </Button>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

function Table({ rows }: { rows: [string[], string][] }) {
  return (
    <dl className="keys">
      {rows.map(([keys, does]) => (
        <div key={does}>
          <dt>
            {keys.map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>{does}</dd>
        </div>
      ))}
    </dl>
  );
}
