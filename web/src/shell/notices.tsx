// Short messages at the edge of the page: what was done, and what went wrong. They are read out by screen readers and can
// be reached with F6.

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

/** Says that something was done. */
export function done(title: string): void {
  queue.add({ tone: "good", title }, { timeout: 6000 });
}

/** Says that something was not done, until it is put away. */
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
          <Button slot="close" aria-label="Put away">
            <span aria-hidden="true">×</span>
          </Button>
        </Toast>
      )}
    </ToastRegion>
  );
}
