// Short messages at the edge of the page. Screen readers announce them, and F6 moves to them.

import {
  Button,
  Text,
  UNSTABLE_Toast as Toast,
  UNSTABLE_ToastContent as ToastContent,
  UNSTABLE_ToastQueue as ToastQueue,
  UNSTABLE_ToastRegion as ToastRegion,
} from "react-aria-components";

interface Notice {
  tone: "good" | "bad";
  title: string;
  detail?: string;
}

const queue = new ToastQueue<Notice>({ maxVisibleToasts: 3 });

/** Reports a success. */
export function done(title: string): void {
  queue.add({ tone: "good", title }, { timeout: 6000 });
}

/** Reports a failure until it is dismissed. */
export function failed(title: string, error: unknown): void {
  queue.add({ tone: "bad", title, detail: error instanceof Error ? error.message : String(error) });
}

export function Notices() {
  return (
    <ToastRegion queue={queue} className="notices" aria-label="Notices">
      {({ toast }) => (
        <Toast toast={toast} className={`notice notice-${toast.content.tone}`}>
          <ToastContent>
            <Text slot="title">{toast.content.title}</Text>
            {toast.content.detail && <Text slot="description">{toast.content.detail}</Text>}
          </ToastContent>
          <Button slot="close" aria-label="Dismiss">
            <span aria-hidden="true">×</span>
          </Button>
        </Toast>
      )}
    </ToastRegion>
  );
}
