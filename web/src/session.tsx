// Who is logged in, for everything below it.

import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Host } from "./host/host";
import type { Role, Session } from "./host/wire";
import { match, usePath } from "./router";

export interface SessionState {
  host: Host;
  session: Session;
  /** Ends the session here and at the host. */
  logOut: () => Promise<void>;
}

type Known =
  | { state: "asking" }
  | { state: "out" }
  | { state: "unreachable"; why: string }
  | { state: "in"; session: Session }
  /** What a link opened has ended. `other` goes on in this browser, and nothing is read in its name until somebody wants that. */
  | { state: "over"; link: Session; other: Session | undefined };

export interface Gate {
  host: Host;
  known: Known;
  enter: (session: Session) => void;
  leave: () => void;
  /** Asks who is here; who was here stays until the host has answered. */
  ask: () => void;
  /** The same, for whoever is here now. */
  goOn: () => void;
}

const Current = createContext<SessionState | undefined>(undefined);

/** The session and the way to the host. Only below `Entered`. */
export function useSession(): SessionState {
  const session = useContext(Current);
  if (session === undefined) throw new Error("there is no session here");
  return session;
}

/** Whether the session may do what needs one of these roles. */
export function hasRole(session: Session, ...roles: Role[]): boolean {
  return roles.some((role) => session.roles.includes(role));
}

/** Asks the host who is there, and again where that depends on the page. */
export function useGate(): Gate {
  const [host] = useState(() => new Host());
  const [known, setKnown] = useState<Known>({ state: "asking" });
  const was = useRef<Known>(known);
  const about = match("/suspensions/:s", usePath())?.s;
  const asking = useRef(new AbortController());
  /** What was asked before says nothing any more. */
  const become = useCallback((now: Known) => {
    asking.current.abort();
    was.current = now;
    setKnown(now);
  }, []);
  const leave = useCallback(() => become({ state: "out" }), [become]);
  const enter = useCallback((session: Session) => become({ state: "in", session }), [become]);
  const ask = useCallback(() => {
    asking.current.abort();
    asking.current = new AbortController();
    const { signal } = asking.current;
    host.session(about, signal).then(
      (session) => {
        if (signal.aborted) return;
        const now = after(was.current, session, about);
        // The word of what is over stays: whatever still asks for something is refused by it.
        if (now.state !== "over") host.act(session);
        become(now);
      },
      (error: Error) => {
        // Who was here stays: each page says by itself what the host does not answer.
        const stays = was.current.state === "in" || was.current.state === "over";
        if (!signal.aborted && !stays) become({ state: "unreachable", why: error.message });
      },
    );
  }, [host, about, become]);
  const goOn = useCallback(() => {
    become({ state: "asking" });
    ask();
  }, [become, ask]);
  useEffect(() => {
    // What has ended may have been a link's, beside which a log-in goes on.
    host.onSignedOut = ask;
    ask();
    return () => asking.current.abort();
  }, [host, ask]);
  return useMemo(() => ({ host, known, enter, leave, ask, goOn }), [host, known, enter, leave, ask, goOn]);
}

/** What follows from who is here now. On the page of a link's question nobody takes the link's place by themselves. */
function after(was: Known, session: Session | undefined, about: string | undefined): Known {
  const link = was.state === "in" ? was.session : was.state === "over" ? was.link : undefined;
  if (link?.only != null && link.only === about) {
    const isSame = session?.only === link.only && session.principal === link.principal;
    if (!isSame) return { state: "over", link, other: session };
  }
  return session ? { state: "in", session } : { state: "out" };
}

/** What is below has a session. */
export function Entered({ gate, session, children }: { gate: Gate; session: Session; children: ReactNode }) {
  const { host, leave } = gate;
  const logOut = useCallback(async () => {
    await host.toolgate.signOut();
    leave();
  }, [host, leave]);
  const value = useMemo(() => ({ host, session, logOut }), [host, session, logOut]);
  return <Current value={value}>{children}</Current>;
}
