/** Makes elements. Text is always a text node: this package never parses HTML. */

type Child = Node | string | undefined | false;

interface Made {
  part?: string;
  class?: string;
  attributes?: Record<string, string | undefined>;
  on?: Record<string, (event: Event) => void>;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  made: Made = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (made.part !== undefined) element.setAttribute("part", made.part);
  if (made.class !== undefined) element.className = made.class;
  for (const [name, value] of Object.entries(made.attributes ?? {})) {
    if (value !== undefined) element.setAttribute(name, value);
  }
  for (const [name, listener] of Object.entries(made.on ?? {})) element.addEventListener(name, listener);
  fill(element, ...children);
  return element;
}

/** Replaces the children of an element. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(
    ...children.filter((child): child is Node | string => child !== undefined && child !== false),
  );
}

/** Sets a text if it differs, so that screen readers do not repeat it. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

let ids = 0;

/** A new id. */
export function freshId(): string {
  ids += 1;
  return `t${ids}`;
}
