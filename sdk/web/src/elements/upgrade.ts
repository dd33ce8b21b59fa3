/** Properties that a page set on an element before its class was known lie in front of the accessors; they are set again. */
export function upgrade(element: HTMLElement, ...names: string[]): void {
  for (const name of names) {
    if (!Object.hasOwn(element, name)) continue;
    const value: unknown = Reflect.get(element, name);
    Reflect.deleteProperty(element, name);
    Reflect.set(element, name, value);
  }
}
