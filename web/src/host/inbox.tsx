// What waits, for the whole console: one stream of it, whichever page is open.

import type { PendingStatus, PendingStore } from "@toolgate/web";
import type { ToolgateInbox } from "@toolgate/web/elements";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { useSession } from "../session";

interface Waiting {
  store: PendingStore;
  open: number;
  status: PendingStatus;
  /** Cards whose answers were begun, for when the reader comes back to the inbox. They go with the session. */
  drafts: ToolgateInbox["drafts"];
}

const Context = createContext<Waiting | undefined>(undefined);

/** What waits. Only below `Inboxed`. */
export function useInbox(): Waiting {
  const waiting = useContext(Context);
  if (waiting === undefined) throw new Error("there is no inbox here");
  return waiting;
}

/** Follows what waits: while the page is seen, as every stream does. */
export function Inboxed({ children }: { children: ReactNode }) {
  const { host } = useSession();
  const store = useMemo(() => host.toolgate.pendingStore(), [host]);
  const [seen, setSeen] = useState<{ open: number; status: PendingStatus }>({
    open: 0,
    status: { state: "idle" },
  });
  useEffect(() => {
    const look = () => {
      const open = store.all.filter(({ kind }) => kind !== "client_exec").length;
      setSeen((before) =>
        before.open === open && before.status === store.status ? before : { open, status: store.status },
      );
    };
    const stop = store.subscribe(look);
    look();
    return stop;
  }, [store]);
  const [drafts] = useState<Waiting["drafts"]>(() => new Map());
  const value = useMemo(() => ({ store, drafts, ...seen }), [store, drafts, seen]);
  return <Context value={value}>{children}</Context>;
}
