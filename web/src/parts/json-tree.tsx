// JSON as a tree that folds. Keys and values are untrusted, and are only shown as text.

import { useState } from "react";
import { Button } from "react-aria-components";
import { ExactNumber } from "../text/json";
import { shown, shownLines } from "../text/shown";
import { counted } from "../text/words";

/** Members that are shown at first, and that each press adds. */
const PAGE = 100;
/** Small objects of the first levels are open at first. */
const OPEN = { depth: 2, members: 20 };

export function JsonTree({ value, label }: { value: unknown; label: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields.
    <div className="json" role="group" aria-label={label}>
      <Value value={value} depth={0} />
    </div>
  );
}

function Value({ value, depth }: { value: unknown; depth: number }) {
  if (Array.isArray(value))
    return (
      <Members entries={value.map((item, index) => [String(index), item])} depth={depth} brackets="[]" />
    );
  if (value instanceof ExactNumber) return <span className="json-number">{value.text}</span>;
  if (typeof value === "object" && value !== null)
    return <Members entries={Object.entries(value)} depth={depth} brackets="{}" />;
  if (typeof value === "string") return <Words text={value} />;
  return <span className={`json-${value === null ? "null" : typeof value}`}>{String(value)}</span>;
}

function Words({ text }: { text: string }) {
  if (text.includes("\n")) return <bdi className="json-string json-block">{shownLines(text)}</bdi>;
  return <bdi className="json-string">{shown(JSON.stringify(text))}</bdi>;
}

function Members({
  entries,
  depth,
  brackets,
}: {
  entries: [string, unknown][];
  depth: number;
  brackets: "[]" | "{}";
}) {
  const [open, setOpen] = useState(depth < OPEN.depth && entries.length <= OPEN.members);
  const [most, setMost] = useState(PAGE);
  const [first, last] = [brackets[0], brackets[1]];
  if (entries.length === 0) return <span className="json-bracket">{brackets}</span>;
  const isList = brackets === "[]";
  const count = counted(entries.length, isList ? "item" : "member");
  return (
    <>
      <Button className="json-fold" aria-expanded={open} onPress={() => setOpen(!open)}>
        <span className="json-arrow" aria-hidden="true" />
        <span className="json-bracket">{open ? first : `${first}…${last}`}</span>
        <span className="json-count">{count}</span>
      </Button>
      {open && (
        <ul className="json-members">
          {entries.slice(0, most).map(([key, item]) => (
            <li key={key}>
              <bdi className={isList ? "json-index" : "json-key"}>{isList ? key : shown(key)}</bdi>
              <span className="json-colon">: </span>
              <Value value={item} depth={depth + 1} />
            </li>
          ))}
          {entries.length > most && (
            <li>
              <Button className="button button-quiet" onPress={() => setMost(most + PAGE)}>
                {counted(entries.length - most, "more", "more")}
              </Button>
            </li>
          )}
        </ul>
      )}
    </>
  );
}
