// What @rjsf/core hands to its Markdown renderer can quote a plugin: the name of a file in a default, a name in a schema.
// Nothing of a plugin becomes markup, so this package takes the renderer's place and shows the text as it is.
import { createElement } from "react";

export function Markdown({ children }) {
  return createElement("span", null, children);
}

export default Markdown;
