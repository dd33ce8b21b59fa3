/** Helpers to read and operate a card. */

export const root = (card: HTMLElement) => card.shadowRoot as ShadowRoot;
export const text = (card: HTMLElement, part: string) =>
  root(card).querySelector(`[part~="${part}"]`)?.textContent ?? "";
export const button = (card: HTMLElement, part: string) =>
  root(card).querySelector<HTMLButtonElement>(`[part~="${part}"]`);
export const press = (target: Element | null | undefined, key: string, more: KeyboardEventInit = {}) =>
  target?.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, composed: true, cancelable: true, ...more }),
  );

export function type(input: HTMLInputElement | HTMLTextAreaElement | null | undefined, value: string): void {
  if (!input) throw new Error("there is no such field");
  input.value = value;
  input.dispatchEvent(new window.Event("input", { bubbles: true }));
}
