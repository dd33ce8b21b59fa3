// Escapes the untrusted text of plugins, models and callers in events, which carry it unchanged. The host escapes its `display`
// members and problems itself. See docs/hostile-text.md.

export { shownLine as shown, shownLines } from "@toolgate/web";
