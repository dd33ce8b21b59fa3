// Filters of a list. They are part of the address, so that a filtered list can be bookmarked and shared.

import { type FormEvent, useEffect, useState } from "react";
import { Button, Input, Label, TextField } from "react-aria-components";
import { useQuery } from "../router";

export interface Filter {
  name: string;
  label: string;
  hint?: string;
}

export function Filters({ filters }: { filters: Filter[] }) {
  const [query, change] = useQuery();
  const stand = Object.fromEntries(filters.map(({ name }) => [name, query.get(name) ?? ""]));
  const key = JSON.stringify(stand);
  const [written, setWritten] = useState(stand);
  useEffect(() => setWritten(JSON.parse(key) as Record<string, string>), [key]);
  const isSet = Object.values(stand).some((value) => value !== "");
  const apply = (event: FormEvent) => {
    event.preventDefault();
    change(Object.fromEntries(Object.entries(written).map(([name, value]) => [name, value.trim()])));
  };
  return (
    <search>
      <form className="filters" onSubmit={apply}>
        {filters.map(({ name, label, hint }) => (
          <TextField
            key={name}
            className="field"
            value={written[name] ?? ""}
            onChange={(value) => setWritten({ ...written, [name]: value })}
          >
            <Label>{label}</Label>
            <Input className="input" spellCheck="false" {...(hint ? { placeholder: hint } : {})} />
          </TextField>
        ))}
        <div className="filters-end">
          <Button type="submit" className="button">
            Filter
          </Button>
          <Button
            className="button button-quiet"
            isDisabled={!isSet}
            onPress={() => change(Object.fromEntries(filters.map(({ name }) => [name, ""])))}
          >
            Clear
          </Button>
        </div>
      </form>
    </search>
  );
}
