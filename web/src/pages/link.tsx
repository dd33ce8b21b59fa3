// A one-time link. To open the page uses nothing up: programs that look through mail open links, too. The button does.

import type { ToolgateError } from "@toolgate/web";
import { useEffect, useState } from "react";
import icon from "../icon.svg";
import { ActButton, useAct } from "../parts/act";
import { match, navigate, usePath } from "../router";
import type { Gate } from "../session";

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
