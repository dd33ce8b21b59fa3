// The elements of @toolgate/web in React. The console and other pages use the same cards.

import type { PendingStore, Toolgate } from "@toolgate/web";
import "@toolgate/web/elements";
import type { ToolgateInbox } from "@toolgate/web/elements";
import type { DetailedHTMLProps, HTMLAttributes } from "react";

interface Inbox extends HTMLAttributes<ToolgateInbox> {
  toolgate?: Toolgate;
  store?: PendingStore;
  drafts?: ToolgateInbox["drafts"];
  conversation?: string;
  caller?: string;
  tool?: string;
  kind?: string;
  mine?: string;
  "heading-level"?: string;
}

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "toolgate-inbox": DetailedHTMLProps<Inbox, ToolgateInbox>;
    }
  }
}
