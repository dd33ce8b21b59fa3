// The open suspensions for the whole console: one stream for all pages.

import type { PendingStatus, PendingStore } from "@toolgate/web";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { type Drafts, useSession } from "../session";

interface Waiting {
  store: PendingStore;
  open: number;
  status: PendingStatus;
  drafts: Drafts;
}

const Context = createContext<Waiting | undefined>(undefined);

/** The open suspensions. Only below `Inboxed`. */
export function useInbox(): Waiting {
  const waiting = useContext(Context);
  if (waiting === undefined) throw new Error("there is no inbox here");
  return waiting;
}

/** Follows the open suspensions while the page is visible. */
export function Inboxed({ children }: { children: ReactNode }) {
  const { host, drafts } = useSession();
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
  const value = useMemo(() => ({ store, drafts, ...seen }), [store, drafts, seen]);
  return <Context value={value}>{children}</Context>;
}
