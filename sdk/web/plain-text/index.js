// @rjsf/core passes texts to its Markdown renderer that can quote a plugin: the name of a file in a default, a name in a
// schema. No text of a plugin may become markup. So this package replaces the renderer and shows the text as it is.
import { createElement } from "react";

export function Markdown({ children }) {
  return createElement("span", null, children);
}

export default Markdown;
