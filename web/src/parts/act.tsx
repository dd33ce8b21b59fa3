// A button for what takes a while at the host and is not to be done twice.

import { type ReactNode, useCallback, useRef, useState } from "react";
import { Button, type ButtonProps } from "react-aria-components";

/**
 * Does one thing at a time: what is asked for while another runs is not done. The state of a button is not enough, because a
 * form is also sent with the Enter key, even while it has no button that could send it.
 */
export function useAct<A extends unknown[]>(act: (...given: A) => Promise<void>) {
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  const latest = useRef(act);
  latest.current = act;
  const run = useCallback((...given: A): void => {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    void latest.current(...given).finally(() => {
      running.current = false;
      setBusy(false);
    });
  }, []);
  return { busy, run };
}

interface ActButtonProps extends Omit<ButtonProps, "children" | "isPending"> {
  busy: boolean;
  /** What it says meanwhile, also to screen readers. */
  doing: string;
  children: ReactNode;
}

export function ActButton({ busy, doing, children, ...button }: ActButtonProps) {
  const [focused, setFocused] = useState(false);
  return (
    <>
      <Button {...button} isPending={busy} onFocusChange={setFocused}>
        {busy ? doing : children}
      </Button>
      {/* React Aria reads out a button that has the focus when it begins to wait. Who pressed Enter in a field hears it here. */}
      <span className="visually-hidden" role="status">
        {busy && !focused ? doing : ""}
      </span>
    </>
  );
}
