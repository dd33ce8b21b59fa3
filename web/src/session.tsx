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
  | { state: "in"; session: Session };

export interface Gate {
  host: Host;
  known: Known;
  enter: (session: Session) => void;
  leave: () => void;
  ask: () => void;
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
  const about = match("/suspensions/:s", usePath())?.s;
  const asking = useRef(new AbortController());
  /** What was asked before says nothing any more. */
  const become = useCallback((now: Known) => {
    asking.current.abort();
    setKnown(now);
  }, []);
  const leave = useCallback(() => become({ state: "out" }), [become]);
  const enter = useCallback((session: Session) => become({ state: "in", session }), [become]);
  const ask = useCallback(() => {
    asking.current.abort();
    asking.current = new AbortController();
    const { signal } = asking.current;
    host.session(about, signal).then(
      (session) => signal.aborted || setKnown(session ? { state: "in", session } : { state: "out" }),
      (error: Error) => {
        // Who was here stays: each page says by itself what the host does not answer.
        const otherwise: Known = { state: "unreachable", why: error.message };
        if (!signal.aborted) setKnown((before) => (before.state === "in" ? before : otherwise));
      },
    );
  }, [host, about]);
  useEffect(() => {
    // What has ended may have been a link's, beside which a log-in goes on.
    host.onSignedOut = ask;
    ask();
    return () => asking.current.abort();
  }, [host, ask]);
  return useMemo(() => ({ host, known, enter, leave, ask }), [host, known, enter, leave, ask]);
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
