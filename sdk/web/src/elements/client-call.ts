/** `<toolgate-client-call>`: a call that an attached client carries out. People can see it, but have nothing to answer. */
import type { Suspension } from "../wire.js";
import { Card } from "./card.js";
import { make, say } from "./dom.js";
import { argumentsOf, context, expiry, header } from "./sections.js";

/** The element `<toolgate-client-call>`: a call that an attached client carries out. */
export class ToolgateClientCall extends Card {
  #expiry = make("p", { part: "expiry", class: "muted" });

  protected build(suspension: Suspension): void {
    const level = Number(this.getAttribute("heading-level") ?? "3");
    const { id, element } = header(suspension, level, "Client call");
    this.root.replaceChildren(
      make(
        "article",
        { part: "card", attributes: { "aria-labelledby": id, tabindex: "-1" } },
        element,
        make(
          "p",
          { part: "reason" },
          "An attached client, such as a page or a program, carries this out. There is nothing to answer here.",
        ),
        argumentsOf(suspension),
        context(suspension),
        this.#expiry,
        this.problem,
        this.status,
      ),
    );
  }

  protected update(): void {
    this.#expiry.hidden = this.closed !== undefined;
  }

  protected override tick(suspension: Suspension, now: number): void {
    say(this.#expiry, expiry(suspension, now));
  }
}
