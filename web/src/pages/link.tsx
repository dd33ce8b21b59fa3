// A one-time link. Opening the page does not use the link, because mail scanners also open links. The button does.

import type { ToolgateError } from "@toolgate/web";
import { useEffect, useRef, useState } from "react";
import { Button, Link } from "react-aria-components";
import type { Session } from "../host/wire";
import icon from "../icon.svg";
import { ActButton, useAct } from "../parts/act";
import { match, navigate, usePath } from "../router";
import type { Gate } from "../session";
import { shown } from "../text/shown";

export function LinkPage({ gate }: { gate: Gate }) {
  const path = usePath();
  const [error, setError] = useState<ToolgateError>();
  const link = match("/link/:token", path)?.token ?? "";
  useEffect(() => {
    document.title = "A question for you · toolgate";
  }, []);
  const { busy, run } = useAct(async () => {
    try {
      const session = await gate.host.toolgate.signInWithLink(link);
      gate.enter(session);
      navigate(`/suspensions/${encodeURIComponent(session.only ?? "")}`, { replace: true });
    } catch (failure) {
      setError(failure as ToolgateError);
    }
  });
  return (
    <main className="alone">
      <img src={icon} alt="" width="48" height="48" />
      <h1>Your answer is needed</h1>
      <p>This link opens one question, once. Anyone who opens it answers in your name, so do not share it.</p>
      {error && (
        <p className="trouble" role="alert">
          {error.message}
        </p>
      )}
      {/* An invalid link stays invalid, so there is no button to try again. */}
      {(error === undefined || error.isTransient) && (
        <ActButton className="button button-main" onPress={run} busy={busy} doing="Opening the question …">
          Show the question
        </ActButton>
      )}
    </main>
  );
}

/** Shown when a link's session ends while its page is open. `other` is the log-in of this browser, if there is one. */
export function LinkOver({
  link,
  other,
  goOn,
}: {
  link: Session;
  other: Session | undefined;
  goOn: () => void;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = "This link is no longer valid · toolgate";
    heading.current?.focus();
  }, []);
  return (
    <main className="alone">
      <img src={icon} alt="" width="48" height="48" />
      <h1 ref={heading} tabIndex={-1}>
        This link is no longer valid
      </h1>
      <p>
        Its session for {shown(link.principal)} lasts an hour at most. Answers that were not sent are lost. If
        the question is still open, ask for another link.
      </p>
      {other ? (
        <>
          <p>This browser is also logged in as {shown(other.principal)}, who may have other rights here.</p>
          <Button className="button button-main" onPress={goOn}>
            Continue as {shown(other.principal)}
          </Button>
        </>
      ) : (
        <Link className="link" href="/login">
          Log in instead
        </Link>
      )}
    </main>
  );
}
