import "./theme";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/pages.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";

// React Aria adds a <style> with one rule for buttons, which the page's policy refuses. It does not if an element with this
// id exists. base.css has the rule.
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
