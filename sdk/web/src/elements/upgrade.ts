/** Sets properties again that a page set before the element was defined, because they shadow the accessors. */
export function upgrade(element: HTMLElement, ...names: string[]): void {
  for (const name of names) {
    if (!Object.hasOwn(element, name)) continue;
    const value: unknown = Reflect.get(element, name);
    Reflect.deleteProperty(element, name);
    Reflect.set(element, name, value);
  }
}
