/** Replacements for parts of RJSF's theme: buttons that use an icon font, and parts that render markup. */

import getDefaultRegistry from "@rjsf/core/lib/getDefaultRegistry.js";
import type {
  BaseInputTemplateProps,
  Field,
  FieldPathList,
  FieldProps,
  IconButtonProps,
  MultiSchemaFieldTemplateProps,
  RegistryFieldsType,
  RegistryWidgetsType,
  TemplatesType,
  WidgetProps,
} from "@rjsf/utils";
import { getDecimalSeparator } from "@rjsf/utils";
import { type ChangeEvent, useState } from "react";
import { isExact } from "../json-text.js";
import { line } from "../text.js";

const { templates: usual, fields: usualFields } = getDefaultRegistry();
const UsualInput = usual.BaseInputTemplate;

function Input(props: BaseInputTemplateProps) {
  const isWrong = (props.rawErrors?.length ?? 0) > 0;
  return <UsualInput {...props} {...(isWrong && { "aria-invalid": true })} />;
}

/**
 * A number field. A number that JavaScript cannot hold exactly stays text, which matches no number schema, so the validator
 * reports it. The default field would change the digits silently.
 */
function NumberField(props: FieldProps) {
  const { registry, schema, formData, onChange } = props;
  const [typed, setTyped] = useState<unknown>();
  const { StringField = usualFields.StringField as Field } = registry.fields;
  const change = (value: unknown, path: FieldPathList, errors?: FieldProps["errorSchema"], id?: string) => {
    setTyped(value);
    onChange(numberOf(value), path, errors, id);
  };
  // “1.50” must not become “1.5” during typing.
  const isSame = typeof typed === "string" && numberOf(typed) === formData;
  const isWritten = typeof formData === "number" && schema.enum === undefined && schema.oneOf === undefined;
  const shown = isWritten ? String(formData).replace(".", getDecimalSeparator()) : formData;
  return <StringField {...props} formData={isSame ? typed : shown} onChange={change} />;
}

function numberOf(typed: unknown): unknown {
  if (typeof typed !== "string") return typed;
  if (typed === "") return undefined;
  const text = typed.replace(getDecimalSeparator(), ".");
  return isExact(text) ? Number(text) : text;
}

/** A button with a text label. */
function worded(word: string) {
  return function Button({ id, onClick, disabled }: IconButtonProps) {
    return (
      <button type="button" id={id} onClick={onClick} disabled={disabled} className="plain">
        {word}
      </button>
    );
  };
}

/** A file as a data URL. The default widget renders the file's name as Markdown, and a default value can set that name. */
function FileInput({ id, disabled, readonly, onChange, value, required }: WidgetProps) {
  const read = (event: ChangeEvent<HTMLInputElement>) => {
    const file = event.target.files?.[0];
    if (file === undefined) return;
    const reader = new FileReader();
    reader.onload = () => onChange(reader.result);
    reader.readAsDataURL(file);
  };
  const isChosen = typeof value === "string" && value !== "";
  return (
    <div>
      <input
        type="file"
        id={id}
        onChange={read}
        disabled={disabled || readonly}
        required={required && !isChosen}
      />
      <p className="muted">{isChosen ? `Chosen: ${value.length} characters` : "No file chosen"}</p>
    </div>
  );
}

/** The choice between alternatives, with a label. */
function Alternatives({ selector, optionSchemaField }: MultiSchemaFieldTemplateProps) {
  return (
    <div className="alternatives">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the selector is the control */}
      <label>
        <span className="label">One of</span>
        {selector}
      </label>
      {optionSchemaField}
    </div>
  );
}

function Unsupported({ reason }: { reason?: string }) {
  return <p className="error">This part of the form cannot be shown{reason ? `: ${line(reason)}` : ""}.</p>;
}

export const fields: RegistryFieldsType = { NumberField };

export const widgets: RegistryWidgetsType = { FileWidget: FileInput };

export const templates: Partial<Omit<TemplatesType, "ButtonTemplates">> & {
  ButtonTemplates?: Partial<TemplatesType["ButtonTemplates"]>;
} = {
  BaseInputTemplate: Input,
  MultiSchemaFieldTemplate: Alternatives,
  UnsupportedFieldTemplate: Unsupported,
  ButtonTemplates: {
    AddButton: worded("Add"),
    CopyButton: worded("Copy"),
    MoveDownButton: worded("Move down"),
    MoveUpButton: worded("Move up"),
    RemoveButton: worded("Remove"),
    ClearButton: worded("Clear"),
  },
};
