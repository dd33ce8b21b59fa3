// Which path shows which page, and who may see it.

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
  /** In the navigation; a page without a name is reached by a link. */
  name?: string;
  /** The key that leads there, behind `g`. */
  key?: string;
  /** One of these is needed; everybody may, where there are none. */
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

/** The places of the navigation that a session may see. A one-time link opens one suspension and nothing else. */
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
