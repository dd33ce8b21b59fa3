// The conversations that the principal may see.

import { type FormEvent, useState } from "react";
import { Button, Input, Label, TextField } from "react-aria-components";
import { ConversationLink, Strange } from "../parts/bits";
import { Empty, Page, Skeleton, Trouble } from "../parts/page";
import { More, usePages } from "../parts/pages";
import { navigate } from "../router";
import { useSession } from "../session";

interface Row {
  conversation: string;
  owner: string;
}

export function Conversations() {
  const { host } = useSession();
  const pages = usePages("conversations", async (after: string | undefined, signal) => {
    const page = await host.get<{ conversations: Row[]; next?: string | null }>("/v1/conversations", {
      query: { after, limit: 100 },
      signal,
    });
    return { items: page.conversations, next: page.next ?? undefined };
  });
  return (
    <Page title="Conversations" lead="The calls of each agent, in order." aside={<OpenOne />}>
      {pages.items.length > 0 && (
        <ul className="rows">
          {pages.items.map(({ conversation, owner }) => (
            <li key={conversation} className="row">
              <ConversationLink id={conversation} />
              <span className="row-end">
                of <Strange>{owner}</Strange>
              </span>
            </li>
          ))}
        </ul>
      )}
      {pages.error && <Trouble error={pages.error} again={pages.again} />}
      {pages.loading && pages.items.length === 0 && <Skeleton rows={5} />}
      {!pages.loading && !pages.error && pages.items.length === 0 && (
        <Empty title="No conversation yet">
          An agent starts one with <code>POST /v1/conversations/NAME/turns</code>, or try{" "}
          <code>cargo xtask demo</code>.
        </Empty>
      )}
      <More pages={pages} />
    </Page>
  );
}

/** Opens a conversation by its name, because the list can be long. */
function OpenOne() {
  const [id, setId] = useState("");
  const open = (event: FormEvent) => {
    event.preventDefault();
    if (id.trim() !== "") navigate(`/conversations/${encodeURIComponent(id.trim())}`);
  };
  return (
    <form className="inline" onSubmit={open}>
      <TextField className="field field-inline" value={id} onChange={setId}>
        <Label className="visually-hidden">Name of a conversation</Label>
        <Input className="input" placeholder="Name of a conversation" spellCheck="false" />
      </TextField>
      <Button type="submit" className="button">
        Open
      </Button>
    </form>
  );
}
