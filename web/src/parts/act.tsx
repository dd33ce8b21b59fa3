// A button for a request that takes a while and must not be sent twice.

import { type ReactNode, useCallback, useRef, useState } from "react";
import { Button, type ButtonProps } from "react-aria-components";

/**
 * Runs one action at a time, and ignores further requests until it ends. A disabled button is not enough, because the Enter key
 * submits a form even without a button.
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
  /** The label during the action, also for screen readers. */
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
      {/* React Aria announces the wait only if the button has the focus. This also announces it after Enter in a field. */}
      <span className="visually-hidden" role="status">
        {busy && !focused ? doing : ""}
      </span>
    </>
  );
}
