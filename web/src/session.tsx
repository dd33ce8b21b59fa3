// The session, for all components below it.

import type { ToolgateInbox } from "@toolgate/web/elements";
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

/** Cards with input that was not sent. */
export type Drafts = ToolgateInbox["drafts"];

export interface SessionState {
  host: Host;
  session: Session;
  /** They stay when the session ends by itself, until another principal logs in or this one logs out. */
  drafts: Drafts;
  /** Ends the session here and at the host. */
  logOut: () => Promise<void>;
}

type Known =
  | { state: "asking" }
  | { state: "out" }
  | { state: "unreachable"; why: string }
  | { state: "in"; session: Session }
  /** The link's session has ended. `other` is the log-in of this browser, which is used only after the user continues as it. */
  | { state: "over"; link: Session; other: Session | undefined };

export interface Gate {
  host: Host;
  known: Known;
  enter: (session: Session) => void;
  leave: () => void;
  /** The drafts of a session's principal. Those of any other principal are dropped. */
  draftsOf: (session: Session) => Drafts;
  /** Asks for the session. The previous one stays until the host answers. */
  ask: () => void;
  /** The same, and continues with the other session. */
  goOn: () => void;
}

const Current = createContext<SessionState | undefined>(undefined);

/** The session and the host. Only below `Entered`. */
export function useSession(): SessionState {
  const session = useContext(Current);
  if (session === undefined) throw new Error("there is no session here");
  return session;
}

/** Whether the session has one of these roles. */
export function hasRole(session: Session, ...roles: Role[]): boolean {
  return roles.some((role) => session.roles.includes(role));
}

/** Asks the host for the session, and again when the page changes it. */
export function useGate(): Gate {
  const [host] = useState(() => new Host());
  const [known, setKnown] = useState<Known>({ state: "asking" });
  const was = useRef<Known>(known);
  const about = match("/suspensions/:s", usePath())?.s;
  const asking = useRef(new AbortController());
  /** Ignores the answers of earlier requests. */
  const become = useCallback((now: Known) => {
    asking.current.abort();
    was.current = now;
    setKnown(now);
  }, []);
  const kept = useRef<{ of: string; drafts: Drafts }>(undefined);
  const draftsOf = useCallback((session: Session) => {
    const of = identity(session);
    if (kept.current?.of !== of) kept.current = { of, drafts: new Map() };
    return kept.current.drafts;
  }, []);
  const leave = useCallback(() => {
    become({ state: "out" });
    kept.current = undefined;
  }, [become]);
  const enter = useCallback((session: Session) => become({ state: "in", session }), [become]);
  const ask = useCallback(() => {
    asking.current.abort();
    asking.current = new AbortController();
    const { signal } = asking.current;
    host.session(about, signal).then(
      (session) => {
        if (signal.aborted) return;
        const now = after(was.current, session, about);
        // The old CSRF token stays, so that the host refuses requests that are still under way.
        if (now.state !== "over") host.act(session);
        become(now);
      },
      (error: Error) => {
        // The session stays. Each page shows by itself that the host does not answer.
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
    // A link's session may have ended while a log-in continues.
    host.onSignedOut = ask;
    ask();
    return () => asking.current.abort();
  }, [host, ask]);
  return useMemo(
    () => ({ host, known, enter, leave, draftsOf, ask, goOn }),
    [host, known, enter, leave, draftsOf, ask, goOn],
  );
}

/** Whose session it is, and for which suspension. Components with another identity share nothing. */
export function identity({ only, principal }: Session): string {
  return `${only ?? ""} ${principal}`;
}

/** The next state. On the page of a link's question, the log-in replaces the link's session only after the user agrees. */
function after(was: Known, session: Session | undefined, about: string | undefined): Known {
  const link = was.state === "in" ? was.session : was.state === "over" ? was.link : undefined;
  if (link?.only != null && link.only === about) {
    const isSame = session?.only === link.only && session.principal === link.principal;
    if (!isSame) return { state: "over", link, other: session };
  }
  return session ? { state: "in", session } : { state: "out" };
}

/** Provides the session to its children. */
export function Entered({ gate, session, children }: { gate: Gate; session: Session; children: ReactNode }) {
  const { host, leave } = gate;
  const logOut = useCallback(async () => {
    await host.toolgate.signOut();
    leave();
  }, [host, leave]);
  const drafts = gate.draftsOf(session);
  const value = useMemo(() => ({ host, session, drafts, logOut }), [host, session, drafts, logOut]);
  return <Current value={value}>{children}</Current>;
}
