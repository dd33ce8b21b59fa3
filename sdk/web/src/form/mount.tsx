/** The form of a question, mounted into a shadow root. It is loaded with the first question, because it brings React. */
// The package's index also imports its tests, which need a validator that is not installed.
import Form from "@rjsf/core/lib/components/Form.js";
import type { ErrorSchema, RJSFSchema } from "@rjsf/utils";
import { Component, createRef, type ReactNode } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { fields, templates, widgets } from "./parts.js";
import { forPeople, type Schema } from "./schema.js";
import { errorSchema, type Finding, validator } from "./validator.js";

export interface FormOptions {
  schema: Schema;
  /** Enter was pressed in a field. */
  onSubmit: () => void;
  /** The form cannot be shown. */
  onBroken: (error: unknown) => void;
}

export interface MountedForm {
  /** Whether the user entered anything. */
  readonly isTouched: boolean;
  /** Whether the form is empty, without even a default. */
  readonly isEmpty: boolean;
  /** The value, if it is valid. Otherwise the errors are shown, and the first invalid field gets the focus. */
  read(): { data: unknown } | undefined;
  /** Shows the host's errors. */
  place(found: readonly Finding[]): void;
  disable(disabled: boolean): void;
  unmount(): void;
}

let forms = 0;

export function mount(element: HTMLElement, options: FormOptions): MountedForm {
  forms += 1;
  const idPrefix = `form${forms}`;
  const schema = forPeople(options.schema) as RJSFSchema;
  const form = createRef<Form>();
  const errors: { extra: ErrorSchema } = { extra: {} };
  let [isDisabled, isLive, isTouched] = [false, false, false];
  let data: unknown;
  const root = createRoot(element, { onCaughtError: options.onBroken, onUncaughtError: options.onBroken });
  const render = () =>
    flushSync(() =>
      root.render(
        <Boundary>
          <Form
            ref={form}
            schema={schema}
            validator={validator}
            formData={data}
            extraErrors={errors.extra}
            disabled={isDisabled}
            liveValidate={isLive ? "onChange" : false}
            showErrorList={false}
            noHtml5Validate
            idPrefix={idPrefix}
            fields={fields}
            widgets={widgets}
            templates={templates}
            onChange={(event, id) => {
              data = event.formData;
              // RJSF also reports the defaults that it fills in. The user did not enter those.
              if (id !== undefined) isTouched = true;
            }}
            onSubmit={options.onSubmit}
            onError={() => queueMicrotask(showErrors)}
          >
            <span hidden />
          </Form>
        </Boundary>,
      ),
    );
  const showErrors = () => {
    mark(element);
    element.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  };
  render();
  return {
    get isTouched() {
      return isTouched;
    },
    get isEmpty() {
      return isEmpty(form.current?.state.formData);
    },
    read() {
      isLive = true;
      errors.extra = {};
      render();
      const isValid = flushSync(() => form.current?.validateForm() ?? false);
      return isValid ? { data: form.current?.state.formData } : undefined;
    },
    place(found) {
      errors.extra = errorSchema(found);
      render();
      showErrors();
    },
    disable(disabled) {
      if (isDisabled === disabled) return;
      isDisabled = disabled;
      render();
    },
    unmount: () => root.unmount(),
  };
}

/** Marks the invalid fields for assistive technology. */
function mark(element: HTMLElement): void {
  for (const field of element.querySelectorAll("input, select, textarea")) {
    const described = (field.getAttribute("aria-describedby") ?? "").split(/\s+/);
    const hasErrors = (id: string) =>
      id.endsWith("__error") && element.querySelector(`#${CSS.escape(id)}`) !== null;
    if (described.some(hasErrors)) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
}

/** Whether a value is empty. The form creates nested objects by itself. */
function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value !== "object" || value === null) return value === undefined;
  return Object.values(value).every(isEmpty);
}

class Boundary extends Component<{ children: ReactNode }, { isBroken: boolean }> {
  override state = { isBroken: false };
  static getDerivedStateFromError() {
    return { isBroken: true };
  }
  override render() {
    return this.state.isBroken ? null : this.props.children;
  }
}
