/** The styles. A page sets the colours with custom properties. Light or dark follows its `color-scheme`. */

const BASE = `
:host {
  --_text: var(--toolgate-text, light-dark(#1b1f24, #e6edf3));
  --_muted: var(--toolgate-muted, light-dark(#545d68, #a3adb8));
  --_surface: var(--toolgate-surface, light-dark(#ffffff, #161b22));
  --_sunken: var(--toolgate-sunken, light-dark(#f4f6f8, #0d1117));
  --_border: var(--toolgate-border, light-dark(#d5dae0, #3a424c));
  --_field: var(--toolgate-field-border, light-dark(#7b8591, #7b8591));
  --_accent: var(--toolgate-accent, light-dark(#0b5cad, #79b8ff));
  --_good: var(--toolgate-good, light-dark(#116329, #5bd47a));
  --_bad: var(--toolgate-bad, light-dark(#a1180f, #ff938a));
  --_warn: var(--toolgate-warn, light-dark(#7a4a00, #f0c36d));
  --_good-fill: var(--toolgate-good-fill, light-dark(#e3f6e8, #12331c));
  --_bad-fill: var(--toolgate-bad-fill, light-dark(#fdeceb, #3d1513));
  --_warn-fill: var(--toolgate-warn-fill, light-dark(#fff3d6, #372905));
  --_radius: var(--toolgate-radius, 10px);
  --_font: var(--toolgate-font, system-ui, sans-serif);
  --_mono: var(--toolgate-mono, ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", monospace);
  display: block;
  color: var(--_text);
  font: 400 0.9375rem/1.5 var(--_font);
  text-align: start;
}
:host([hidden]), [hidden] { display: none !important; }
*, *::before, *::after { box-sizing: border-box; }
h3, h4, p, pre, ul, ol, dl, dd, figure, blockquote, fieldset { margin: 0; padding: 0; border: 0; min-inline-size: 0; }
button, input, textarea, select { font: inherit; color: inherit; }
button {
  padding: 0.4375rem 0.875rem; border: 1px solid var(--_field); border-radius: calc(var(--_radius) - 3px);
  background: var(--_surface); cursor: pointer; min-block-size: 2.25rem; font-weight: 550;
  display: inline-flex; gap: 0.375rem; align-items: center; justify-content: center;
}
button:hover { border-color: var(--_text); }
button[aria-disabled="true"], button:disabled { opacity: 0.55; cursor: not-allowed; border-color: var(--_border); }
button.good { background: var(--_good); border-color: var(--_good); color: var(--_surface); }
button.bad { border-color: var(--_bad); color: var(--_bad); }
button.plain { border-color: transparent; background: none; color: var(--_accent); }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px; }
input:not([type="checkbox"], [type="radio"]), textarea, select {
  inline-size: 100%; padding: 0.375rem 0.5rem; border: 1px solid var(--_field); border-radius: calc(var(--_radius) - 4px);
  background: var(--_surface);
}
textarea { font-family: var(--_mono); font-size: 0.875rem; resize: vertical; field-sizing: content; min-block-size: 3rem; }
[aria-invalid="true"] { border-color: var(--_bad) !important; }
code, pre { font-family: var(--_mono); font-size: 0.8438rem; }
pre, .exact { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; tab-size: 2; }
.muted { color: var(--_muted); }
.error { color: var(--_bad); }
.unseen {
  position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
`;

const CARD = `
article {
  position: relative; display: grid; gap: 0.875rem; padding: 1rem 1.125rem; background: var(--_surface);
  border: 1px solid var(--_border); border-radius: var(--_radius); overflow-wrap: anywhere;
}
:host(:focus-within) article { border-color: var(--_accent); }
article.ended { background: var(--_sunken); }
article.ended > :not(header, [part~="status"], [part~="prompt"], [part~="arguments"]) { opacity: 0.75; }
header { display: flex; flex-wrap: wrap; gap: 0.25rem 0.625rem; align-items: baseline; }
[part~="title"] { font-size: 1.0625rem; font-weight: 650; line-height: 1.3; }
.from { flex: 1 1 12rem; font-size: 0.8438rem; color: var(--_muted); }
.badge {
  padding: 0.0625rem 0.5rem; border: 1px solid currentColor; border-radius: 99px; font-size: 0.7813rem; font-weight: 600;
}
.risk-low { color: var(--_good); background: var(--_good-fill); }
.risk-medium { color: var(--_warn); background: var(--_warn-fill); }
.risk-high, .risk-critical { color: var(--_bad); background: var(--_bad-fill); }
.risk-critical { outline: 1px solid currentColor; }
figure { border-inline-start: 3px solid var(--_border); padding-inline-start: 0.75rem; }
figcaption, h4, legend, .label { font-size: 0.7813rem; font-weight: 600; color: var(--_muted); padding: 0; }
blockquote { white-space: pre-wrap; unicode-bidi: isolate; font-size: 1rem; }
[part~="json"] { padding: 0.625rem 0.75rem; border-radius: calc(var(--_radius) - 4px); background: var(--_sunken); }
.ended [part~="json"] { background: none; border: 1px solid var(--_border); }
.digest { font-size: 0.75rem; color: var(--_muted); }
[part~="diff"] { list-style: none; padding: 0.5rem 0.75rem; background: var(--_sunken); border-radius: calc(var(--_radius) - 4px); }
[part~="diff"] li { font: 0.8438rem/1.5 var(--_mono); white-space: pre-wrap; }
[part~="diff"] .removed { background: var(--_bad-fill); color: var(--_bad); }
[part~="diff"] .added { background: var(--_good-fill); color: var(--_good); }
.fields { display: grid; gap: 0.625rem; }
/* Long content, such as a line of a text field, must not widen the card. */
article, .fields, [part~="people"] { grid-template-columns: minmax(0, 1fr); }
.row { display: flex; flex-wrap: wrap; gap: 0.5rem 0.75rem; align-items: end; }
.row > label { flex: 1 1 7rem; max-inline-size: 12rem; }
.choice { display: flex; gap: 0.5rem; align-items: baseline; }
.choice input { flex: none; }
details > summary { cursor: pointer; color: var(--_accent); font-weight: 550; }
details[open] > summary { margin-block-end: 0.5rem; }
[part~="people"] { display: grid; gap: 0.25rem; font-size: 0.875rem; }
[part~="people"] ul { padding-inline-start: 1.125rem; }
[part~="actions"] { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
[part~="actions"] .grow { flex: 1; }
[part~="status"]:empty, [part~="error"]:empty { display: none; }
[part~="status"] { font-weight: 600; }
[part~="error"] { color: var(--_bad); font-weight: 550; }
kbd { font: 600 0.75rem var(--_mono); padding: 0 0.3125rem; border: 1px solid currentColor; border-radius: 4px; opacity: 0.8; }
@media (forced-colors: active) { .badge, article { border-color: CanvasText; } }
`;

const INBOX = `
[part~="bar"] { display: flex; flex-wrap: wrap; gap: 0.5rem 0.75rem; align-items: center; margin-block-end: 0.75rem; }
[part~="counts"] { font-weight: 600; }
[part~="bar"] .grow { flex: 1; }
[part~="bar"] .row { display: flex; flex-wrap: wrap; gap: 0.5rem 0.75rem; align-items: center; }
.choice { display: flex; gap: 0.5rem; align-items: center; }
.choice input { flex: none; margin: 0; }
[part~="list"] { display: grid; gap: 0.875rem; list-style: none; }
[part~="more"] { margin-block-start: 0.875rem; }
[part~="item"] { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0.625rem; align-items: start; }
[part~="item"] > :last-child { grid-column: 2; }
[part~="item"] .pick { padding-block-start: 1.125rem; }
[part~="item"].single { grid-template-columns: minmax(0, 1fr); }
[part~="item"].single > :last-child { grid-column: 1; }
[part~="empty"] { padding: 2.5rem 1rem; text-align: center; color: var(--_muted); }
[part~="notice"]:empty, [part~="unreadable"]:empty { display: none; }
[part~="notice"], [part~="unreadable"] { padding: 0.5rem 0.75rem; border-radius: var(--_radius); background: var(--_warn-fill); color: var(--_warn); margin-block-end: 0.75rem; }
/* Visible at any place of a long list. */
[part~="notice"]:not(.good) { position: sticky; inset-block-start: var(--toolgate-sticky-start, 0.5rem); z-index: 1; }
[part~="notice"].good { background: var(--_good-fill); color: var(--_good); }
input[type="checkbox"] { inline-size: 1.125rem; block-size: 1.125rem; accent-color: var(--_accent); }
`;

const FORM = `
form, .form-root { display: grid; gap: 0.875rem; }
form, .form-root, fieldset, .rjsf-field, .form-group { grid-template-columns: minmax(0, 1fr); }
fieldset { display: grid; gap: 0.75rem; }
fieldset fieldset { border-inline-start: 2px solid var(--_border); padding-inline-start: 0.875rem; }
.rjsf-field, .form-group { display: grid; gap: 0.25rem; }
.control-label, legend { font-size: 0.875rem; font-weight: 600; color: var(--_text); }
.required { color: var(--_bad); }
.field-description, .help-block { font-size: 0.8438rem; color: var(--_muted); }
.error-detail { list-style: none; padding: 0; color: var(--_bad); font-weight: 550; font-size: 0.875rem; }
.checkbox label, .radio label, .radio-inline, .checkbox-inline, .field-radio-group label { display: inline-flex; gap: 0.5rem; align-items: baseline; }
.alternatives, fieldset .fields { display: grid; gap: 0.5rem; }
.rjsf-array-item, .array-item { gap: 0.75rem; padding-block-end: 0.5rem; }
[class*="col-xs-9"], [class*="col-xs-12"] { flex: 1; min-inline-size: 0; }
.btn-group { display: flex; flex-wrap: wrap; gap: 0.25rem; margin: 0 !important; }
form .row { display: block; }
`;

export type Sheet = "base" | "card" | "inbox" | "form";

const TEXTS: Record<Sheet, string> = { base: BASE, card: CARD, inbox: INBOX, form: FORM };
const made = new Map<Sheet, CSSStyleSheet>();

/** Constructed style sheets. A Content-Security-Policy without `unsafe-inline` allows them, unlike `<style>`. */
export function sheets(...names: Sheet[]): CSSStyleSheet[] {
  return names.map((name) => {
    const known = made.get(name);
    if (known !== undefined) return known;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(TEXTS[name]);
    made.set(name, sheet);
    return sheet;
  });
}
