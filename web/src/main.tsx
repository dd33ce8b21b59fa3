import "./theme";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/pages.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";

// React Aria puts its one rule for buttons into a <style> of its own, which the page's policy refuses. It does not where an
// element with this id is there; the rule stands in base.css.
const styled = document.createElement("meta");
styled.id = "react-aria-pressable-style";
document.head.append(styled);

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
