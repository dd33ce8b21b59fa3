// What waits, for the whole console: one stream of it, whichever page is open.

import type { PendingStatus, PendingStore } from "@toolgate/web";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { useSession } from "../session";

interface Waiting {
  store: PendingStore;
  open: number;
  status: PendingStatus;
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
  const value = useMemo(() => ({ store, ...seen }), [store, seen]);
  return <Context value={value}>{children}</Context>;
}
