// The theme: light, dark, or as the system. Loaded first, so that nothing flashes in the wrong colours.

export type Theme = "system" | "light" | "dark";

const KEY = "toolgate-theme";

/** The choice that this browser keeps. */
export function theme(): Theme {
  const kept = remembered();
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** Sets the theme, and keeps it for the next visit. */
export function chooseTheme(choice: Theme): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
  apply(choice);
}

function remembered(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function apply(choice: Theme): void {
  const root = document.documentElement;
  if (choice === "system") delete root.dataset.theme;
  else root.dataset.theme = choice;
}

apply(theme());
