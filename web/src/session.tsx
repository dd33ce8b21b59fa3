// Who is logged in, for everything below it.

import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import { Host } from "./host/host";
import type { Role, Session } from "./host/wire";

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

/** Asks the host who is there, and knows it from then on. */
export function useGate(): Gate {
  const [host] = useState(() => new Host());
  const [known, setKnown] = useState<Known>({ state: "asking" });
  const leave = useCallback(() => setKnown({ state: "out" }), []);
  const enter = useCallback((session: Session) => setKnown({ state: "in", session }), []);
  const ask = useCallback(() => {
    host.session().then(
      (session) => setKnown(session ? { state: "in", session } : { state: "out" }),
      (error: Error) => setKnown({ state: "unreachable", why: error.message }),
    );
  }, [host]);
  useEffect(() => {
    host.onSignedOut = leave;
    ask();
  }, [host, leave, ask]);
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
