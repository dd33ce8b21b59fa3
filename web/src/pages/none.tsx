// Pages that are not there, or not for this principal.

import { Link } from "react-aria-components";
import type { Role } from "../host/wire";
import { Empty, Page } from "../parts/page";

export function NoSuchPage() {
  return (
    <Page title="No such page">
      <Empty title="There is nothing at this address">
        <Link className="link" href="/">
          To the inbox
        </Link>
      </Empty>
    </Page>
  );
}

export function NotForYou({ roles }: { roles: Role[] }) {
  return (
    <Page title="Not for you">
      <Empty title={`This page needs the role ${roles.join(" or ")}`}>
        The operator gives roles with <code>toolgate token create</code>.
      </Empty>
    </Page>
  );
}
