// Chooses between the login, the one question of a one-time link, and the console.

import { useEffect } from "react";
import { I18nProvider, RouterProvider } from "react-aria-components";
import { Inboxed } from "./host/inbox";
import { LinkOver, LinkPage } from "./pages/link";
import { Login } from "./pages/login";
import { Skeleton, Trouble } from "./parts/page";
import { navigate, ownPath, usePath } from "./router";
import { Routes } from "./routes";
import { Entered, type Gate, identity, useGate } from "./session";
import { Boundary } from "./shell/boundary";
import { Frame } from "./shell/frame";
import { Notices } from "./shell/notices";

export function App() {
  const gate = useGate();
  return (
    <I18nProvider locale="en">
      <RouterProvider navigate={(to) => navigate(to)}>
        <Entry gate={gate} />
        <Notices />
      </RouterProvider>
    </I18nProvider>
  );
}

function Entry({ gate }: { gate: Gate }) {
  const path = usePath();
  const { known } = gate;
  if (path.startsWith("/link/")) return <LinkPage gate={gate} />;
  switch (known.state) {
    case "asking":
      return (
        <main className="alone">
          <Skeleton />
        </main>
      );
    case "unreachable":
      return (
        <main className="alone">
          <h1>The host does not answer</h1>
          <Trouble error={new Error(known.why)} again={gate.ask} />
        </main>
      );
    case "out":
      return path === "/login" ? <Login gate={gate} /> : <ToLogin />;
    case "over":
      return <LinkOver link={known.link} other={known.other} goOn={gate.goOn} />;
    case "in": {
      return (
        // A new principal gets a new tree, so that nothing of the previous one stays.
        <Entered key={identity(known.session)} gate={gate} session={known.session}>
          <Inboxed>
            <Frame>
              <Boundary place={path}>{path === "/login" ? <FromLogin /> : <Routes path={path} />}</Boundary>
            </Frame>
          </Inboxed>
        </Entered>
      );
    }
  }
}

/** Remembers the path for after the login. */
function ToLogin() {
  useEffect(() => {
    const here = location.pathname + location.search;
    navigate(here === "/" ? "/login" : `/login?to=${encodeURIComponent(here)}`, { replace: true });
  }, []);
  return null;
}

function FromLogin() {
  useEffect(() => {
    navigate(ownPath(new URLSearchParams(location.search).get("to")), { replace: true });
  }, []);
  return null;
}
