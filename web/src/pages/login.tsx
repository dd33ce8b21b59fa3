// The login exchanges a token for a session cookie that scripts cannot read.

import { type FormEvent, useEffect, useState } from "react";
import { FieldError, Form, Input, Label, Text, TextField } from "react-aria-components";
import icon from "../icon.svg";
import { ActButton, useAct } from "../parts/act";
import type { Gate } from "../session";

export function Login({ gate }: { gate: Gate }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<string>();
  useEffect(() => {
    document.title = "Log in · toolgate";
  }, []);
  const { busy, run } = useAct(async () => {
    setError(undefined);
    try {
      gate.enter(await gate.host.toolgate.signIn(token.trim()));
    } catch (failure) {
      setError((failure as Error).message);
    }
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    run();
  };
  return (
    <main className="alone">
      <img src={icon} alt="" width="48" height="48" />
      <h1>toolgate</h1>
      <Form className="login" onSubmit={submit}>
        <TextField
          className="field"
          name="token"
          type="password"
          isRequired
          autoFocus
          autoComplete="current-password"
          value={token}
          onChange={setToken}
          isInvalid={error !== undefined}
          validationBehavior="aria"
        >
          <Label>Token</Label>
          <Input className="input" spellCheck="false" placeholder="tg_…" />
          <Text slot="description">
            The host prints a token at its first start. Create more with <code>toolgate token create</code>.
            The browser keeps a session, not the token.
          </Text>
          <FieldError>{error}</FieldError>
        </TextField>
        <ActButton
          type="submit"
          className="button button-main"
          busy={busy}
          doing="Logging in …"
          isDisabled={token.trim() === ""}
        >
          Log in
        </ActButton>
      </Form>
    </main>
  );
}
