// Pages for unknown addresses and missing roles.

import { Link } from "react-aria-components";
import type { Role } from "../host/wire";
import { Empty, Page } from "../parts/page";

export function NoSuchPage() {
  return (
    <Page title="Page not found">
      <Empty title="This address has no page">
        <Link className="link" href="/">
          Go to the inbox
        </Link>
      </Empty>
    </Page>
  );
}

export function NotForYou({ roles }: { roles: Role[] }) {
  return (
    <Page title="Not allowed">
      <Empty title={`This page needs the role ${roles.join(" or ")}`}>
        The operator gives roles with <code>toolgate token create</code>.
      </Empty>
    </Page>
  );
}
