// Policy: evaluates the rules for a call without running it.

import { RawJson } from "@toolgate/web";
import { type FormEvent, useState } from "react";
import { Button, FieldError, Form, Input, Label, Text, TextArea, TextField } from "react-aria-components";
import type { Explained } from "../host/wire";
import { Badge, Facts, Strange, type Tone } from "../parts/bits";
import { Page, Trouble } from "../parts/page";
import { useSession } from "../session";
import { shownLines } from "../text/shown";

const TONES: Record<string, Tone> = { run: "good", allow: "good", ask: "waiting", deny: "bad" };
const EFFECTS: Record<Explained["effective"], string> = {
  run: "The call runs without asking.",
  ask: "A person must approve first.",
  deny: "The call is denied without asking.",
};

export function Policy() {
  const { host } = useSession();
  const [form, setForm] = useState({ tool: "", arguments: "{}", caller: "" });
  const [wrong, setWrong] = useState<string>();
  const [answer, setAnswer] = useState<Explained>();
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const ask = async () => {
    const mistake = notAnObject(form.arguments);
    setWrong(mistake);
    if (mistake !== undefined) return;
    setBusy(true);
    setError(undefined);
    try {
      const body = {
        tool: form.tool.trim(),
        caller: form.caller.trim() || undefined,
        arguments: new RawJson(form.arguments),
      };
      setAnswer(await host.post<Explained>("/v1/policy/explain", { body }));
    } catch (failure) {
      setAnswer(undefined);
      setError(failure as Error);
    } finally {
      setBusy(false);
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void ask();
  };
  return (
    <Page
      title="Policy"
      lead="Ask what the rules decide for a call, and why. Nothing runs, and nothing is recorded."
    >
      <Form className="explain" onSubmit={submit} validationBehavior="aria">
        <TextField
          className="field"
          isRequired
          value={form.tool}
          onChange={(tool) => setForm({ ...form, tool })}
        >
          <Label>Tool</Label>
          <Input className="input" spellCheck="false" />
        </TextField>
        <TextField className="field" value={form.caller} onChange={(caller) => setForm({ ...form, caller })}>
          <Label>Caller</Label>
          <Input className="input" spellCheck="false" />
          <Text slot="description">Empty: you.</Text>
        </TextField>
        <TextField
          className="field field-whole"
          value={form.arguments}
          onChange={(text) => setForm({ ...form, arguments: text })}
          isInvalid={wrong !== undefined}
        >
          <Label>Arguments</Label>
          <TextArea className="input code-input" rows={5} spellCheck="false" />
          <FieldError>{wrong}</FieldError>
        </TextField>
        <Button
          type="submit"
          className="button button-main"
          isPending={busy}
          isDisabled={form.tool.trim() === ""}
        >
          Explain
        </Button>
      </Form>
      <div aria-live="polite">
        {error && <Trouble error={error} again={() => void ask()} />}
        {answer && <Explanation of={answer} />}
      </div>
    </Page>
  );
}

/** Why a text is not a JSON object; undefined if it is. */
function notAnObject(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? undefined
      : "Arguments must be an object: {…}";
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`;
  }
}

function Explanation({ of: answer }: { of: Explained }) {
  return (
    <section className="card" aria-label="Decision of the rules">
      <header className="card-head">
        <h2>{EFFECTS[answer.effective]}</h2>
        <Badge tone={TONES[answer.effective] ?? "plain"}>{answer.effective}</Badge>
      </header>
      <Facts
        rows={[
          ["The tool declares", answer.declared],
          ["Rules", answer.rule],
          ["Decided by", answer.by && <Strange>{answer.by}</Strange>],
          ["Reason", answer.reason && <span dir="auto">{shownLines(answer.reason)}</span>],
          ["Risk", answer.risk],
          [
            "Who approves",
            answer.needs.length > 0 &&
              answer.needs
                .map(
                  ({ who, quorum, via }) =>
                    `${quorum} of ${who.join(", ") || "any approver"}${via?.length ? `, must be answered through: ${via.join(", ")}` : ""}`,
                )
                .join("; "),
          ],
        ]}
      />
      {answer.steps.length > 0 && (
        <table className="audit">
          <caption className="visually-hidden">All rules that were checked</caption>
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col">Matches</th>
              <th scope="col">Decision</th>
              <th scope="col">Why</th>
            </tr>
          </thead>
          <tbody>
            {answer.steps.map((step, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rules may share a name, and their order is fixed.
              <tr key={index} className={step.matched ? "" : "faint"}>
                <td data-label="Rule">
                  <Strange>{step.name}</Strange>
                </td>
                <td data-label="Matches">{step.matched ? "yes" : "no"}</td>
                <td data-label="Decision">
                  <Badge tone={step.matched ? (TONES[step.rule] ?? "plain") : "plain"}>{step.rule}</Badge>
                </td>
                <td data-label="Why">{step.why && <Strange>{step.why}</Strange>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
