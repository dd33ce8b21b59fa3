/** The custom elements. Importing this file defines them. */
import { ToolgateApproval } from "./elements/approval.js";
import { ToolgateClientCall } from "./elements/client-call.js";
import { ToolgateElicitation } from "./elements/elicitation.js";
import { ToolgateInbox } from "./elements/inbox.js";

export type { AnsweredDetail, ClosedDetail } from "./elements/card.js";
export type { CountsDetail } from "./elements/inbox.js";
export { ToolgateApproval, ToolgateClientCall, ToolgateElicitation, ToolgateInbox };

const ELEMENTS = {
  "toolgate-approval": ToolgateApproval,
  "toolgate-client-call": ToolgateClientCall,
  "toolgate-elicitation": ToolgateElicitation,
  "toolgate-inbox": ToolgateInbox,
} as const;

for (const [name, element] of Object.entries(ELEMENTS)) {
  // A page may load this package twice. The first definition stays.
  if (customElements.get(name) === undefined) customElements.define(name, element);
}

declare global {
  interface HTMLElementTagNameMap {
    "toolgate-approval": ToolgateApproval;
    "toolgate-client-call": ToolgateClientCall;
    "toolgate-elicitation": ToolgateElicitation;
    "toolgate-inbox": ToolgateInbox;
  }
}
