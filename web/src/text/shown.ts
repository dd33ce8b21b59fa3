// Text of plugins, models and callers as people are shown it: what could hide, turn around, forge a line or pass for other
// letters is written out. The host does the same, and more, wherever it hands out text for people (`display`, problems); this
// is for what the console takes from events, which are exact. See docs/hostile-text.md.

export { shownLine as shown, shownLines } from "@toolgate/web";
