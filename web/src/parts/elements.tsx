// The elements of @toolgate/web in React. The console and other pages use the same cards.

import type { PendingStore, Toolgate } from "@toolgate/web";
import "@toolgate/web/elements";
import type { ToolgateInbox } from "@toolgate/web/elements";
import type { DetailedHTMLProps, HTMLAttributes } from "react";

interface Card extends HTMLAttributes<HTMLElement> {
  toolgate?: Toolgate;
  store?: PendingStore;
  "suspension-id"?: string;
  "heading-level"?: string;
}

interface Inbox extends HTMLAttributes<HTMLElement> {
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
      "toolgate-approval": DetailedHTMLProps<Card, HTMLElement>;
      "toolgate-elicitation": DetailedHTMLProps<Card, HTMLElement>;
      "toolgate-inbox": DetailedHTMLProps<Inbox, HTMLElement>;
    }
  }
}
