/** Changes of the queries: a statement, what it would do, and a confirmation. */

import { ask, Refusal, setToken, token } from "./connection.js";
import { h } from "./dom.js";

/** @typedef {{name: string, kind: string, text: string, became: "added"|"removed"|"kept"}} ChangedNode */

const SIGNS = { added: "+", removed: "−", kept: "=" };

export class Changes {
  /** @param {HTMLElement} room */
  constructor(room) {
    this.input = /** @type {HTMLTextAreaElement} */ (h("textarea", { id: "change-text", rows: 4, spellcheck: "false",
      placeholder: "ADD QUERY name AS SELECT ...   or   DROP QUERY name   or   ALTER QUERY name SET (strategy = 'bfs')" }));
    this.told = h("div", { "aria-live": "polite" });
    this.form = h("form", { submit: (/** @type {Event} */ event) => { event.preventDefault(); this.propose(); } },
      h("label", { for: "change-text" }, "Statement"), this.input,
      h("p", { class: "buttons" }, h("button", { type: "submit" }, "Show what changes")));
    room.replaceChildren(this.form, this.told);
  }

  /** Let a statement be changed before it is looked at. @param {string} statement */
  write(statement) {
    this.input.value = statement;
    this.told.replaceChildren();
    this.input.focus();
  }

  /** Show what a statement would change. @param {string} [statement] */
  async propose(statement) {
    if (statement !== undefined) this.input.value = statement;
    const text = this.input.value.trim();
    if (!text) return this.input.focus();
    this.form.scrollIntoView({ block: "nearest" });
    try {
      this.confirm(text, await ask("/page/proposal", { sql: text }));
    } catch (error) {
      this.refused(error);
    }
  }

  /** @param {string} text @param {{difference: {nodes: ChangedNode[], sentence: string, altered: string[]}}} found */
  confirm(text, found) {
    const { nodes, sentence } = found.difference;
    const changed = nodes.filter((each) => each.became !== "kept"), kept = nodes.filter((each) => each.became === "kept");
    const yes = h("button", { type: "button", class: "strong", click: () => this.change(text) }, "Confirm");
    const no = h("button", { type: "button", click: () => this.told.replaceChildren() }, "Cancel");
    this.told.replaceChildren(h("div", { class: "card proposal" }, h("h3", {}, "What changes"),
      h("p", { class: "sentence" }, `${sentence}.`),
      differenceList(changed), h("details", {}, h("summary", {}, `${kept.length} stay as they are`), differenceList(kept)),
      h("p", { class: "buttons" }, yes, no)));
    yes.focus();
  }

  /** @param {string} text */
  async change(text) {
    try {
      const replies = await ask("/page/change", { sql: text });
      this.input.value = "";
      const words = replies.map((/** @type {any} */ each) =>
        `${each.query} ${each.did}${each.since ? `, answers from ${each.since} on` : ""}`);
      this.told.replaceChildren(h("p", { class: "calm", "data-done": "true" }, `✓ ${words.join("; ") || "done"}`));
    } catch (error) {
      this.refused(error);
    }
  }

  /** @param {any} error */
  refused(error) {
    const facts = [h("p", { class: "sentence" }, error.message), h("p", { class: "quiet" }, error.hint ?? "")];
    if (error instanceof Refusal && error.status === 401) {
      const input = /** @type {HTMLInputElement} */ (h("input", { type: "password", id: "change-token", autocomplete: "off" }));
      facts.splice(1, 1, h("p", { class: "quiet" }, token() ? "The token of this tab is that of another run. " : "",
        "Open the page by the address that the run printed, or give its token here."),
        h("form", { class: "buttons", submit: (/** @type {Event} */ event) => {
          event.preventDefault();
          setToken(input.value);
          this.propose();
        } }, h("label", { for: "change-token" }, "Token "), input, h("button", { type: "submit" }, "Use it")));
    }
    this.told.replaceChildren(h("div", { class: "card refusal", role: "alert" }, h("h3", {}, "Refused"), ...facts));
  }
}

/** @param {ChangedNode[]} nodes */
function differenceList(nodes) {
  return h("ul", { class: "difference" }, ...nodes.map((each) => h("li", { class: each.became },
    h("span", { class: "sign", role: "img", "aria-label": each.became }, SIGNS[each.became]), ` ${each.kind} `,
    h("code", {}, each.kind === "operator" ? each.text : each.name))));
}
