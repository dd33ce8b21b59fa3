// Which key presses are shortcuts.

/** Whether a key press is a shortcut: not text, and not a key of a dialog or a menu. */
export function isShortcut(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const [target] = event.composedPath();
  if (!(target instanceof HTMLElement)) return true;
  const isWriting = target.isContentEditable || target.matches("input, textarea, select");
  return !isWriting && target.closest("[role=dialog], [role=alertdialog], [role=menu]") === null;
}
