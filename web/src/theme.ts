// Light, dark, or as the system says. Loaded first, so that nothing is painted in the wrong colours.

export type Theme = "system" | "light" | "dark";

const KEY = "toolgate-theme";

/** What was chosen on this machine. */
export function theme(): Theme {
  const kept = remembered();
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** Chooses, now and for the next visit. */
export function chooseTheme(choice: Theme): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // A browser that keeps nothing still shows the choice until the page is left.
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
