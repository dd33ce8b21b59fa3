// A one-time link. To open the page uses nothing up: programs that look through mail open links, too. The button does.

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
      <h1>Somebody waits for your answer</h1>
      <p>This link opens one question, once. Whoever opens it answers in your name, so do not hand it on.</p>
      {error && (
        <p className="trouble" role="alert">
          {error.message}
        </p>
      )}
      {/* A link that counts no more does not count at the next press either. */}
      {(error === undefined || error.isTransient) && (
        <ActButton className="button button-main" onPress={run} busy={busy} doing="Opening the question …">
          Show the question
        </ActButton>
      )}
    </main>
  );
}

/** What a link opened has ended, while its page was open. `other` is who else is logged in with this browser. */
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
    document.title = "The link is over · toolgate";
    heading.current?.focus();
  }, []);
  return (
    <main className="alone">
      <img src={icon} alt="" width="48" height="48" />
      <h1 ref={heading} tabIndex={-1}>
        The link is over
      </h1>
      <p>
        What it opened for {shown(link.principal)} lasted an hour at most, and nothing more is read or
        answered in that name. What was not sent is not answered. If the question still waits, ask for another
        link.
      </p>
      {other ? (
        <>
          <p>
            In this browser {shown(other.principal)} is logged in as well, and may see more or less of it.
          </p>
          <Button className="button button-main" onPress={goOn}>
            Go on as {shown(other.principal)}
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
