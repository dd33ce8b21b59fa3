// The pages, their paths, and the roles that may see them.

import type { ReactNode } from "react";
import type { Role, Session } from "./host/wire";
import { Audit } from "./pages/audit";
import { Conversation } from "./pages/conversation";
import { Conversations } from "./pages/conversations";
import { Inbox } from "./pages/inbox";
import { NoSuchPage, NotForYou } from "./pages/none";
import { Plugins } from "./pages/plugins";
import { Policy } from "./pages/policy";
import { StandingApprovals } from "./pages/standing";
import { Suspension } from "./pages/suspension";
import { match } from "./router";
import { hasRole, useSession } from "./session";

export interface Place {
  path: string;
  /** The name in the navigation. A page without a name is only linked. */
  name?: string;
  /** The key that opens the page, after `g`. */
  key?: string;
  /** One of these roles is required. Empty: everybody may see the page. */
  roles: Role[];
  page: (parts: Record<string, string>) => ReactNode;
}

export const PLACES: Place[] = [
  { path: "/", name: "Inbox", key: "i", roles: [], page: () => <Inbox /> },
  { path: "/suspensions/:s", roles: [], page: ({ s = "" }) => <Suspension id={s} key={s} /> },
  { path: "/conversations", name: "Conversations", key: "c", roles: [], page: () => <Conversations /> },
  { path: "/conversations/:c", roles: [], page: ({ c = "" }) => <Conversation id={c} key={c} /> },
  {
    path: "/standing",
    name: "Standing",
    key: "s",
    roles: ["approver", "admin"],
    page: () => <StandingApprovals />,
  },
  { path: "/plugins", name: "Plugins", key: "p", roles: ["admin"], page: () => <Plugins /> },
  { path: "/policy", name: "Policy", key: "o", roles: ["admin"], page: () => <Policy /> },
  { path: "/audit", name: "Audit", key: "a", roles: ["admin"], page: () => <Audit /> },
];

/** The pages of the navigation for a session. A one-time link opens only one suspension. */
export function placesFor(session: Session): Place[] {
  if (session.only != null) return [];
  return PLACES.filter(
    ({ name, roles }) => name !== undefined && (roles.length === 0 || hasRole(session, ...roles)),
  );
}

export function Routes({ path }: { path: string }) {
  const { session } = useSession();
  if (session.only != null) return <Suspension id={session.only} />;
  for (const place of PLACES) {
    const parts = match(place.path, path);
    if (parts === undefined) continue;
    const may = place.roles.length === 0 || hasRole(session, ...place.roles);
    return may ? place.page(parts) : <NotForYou roles={place.roles} />;
  }
  return <NoSuchPage />;
}
