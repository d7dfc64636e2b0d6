/** The operator that is chosen: all that is known of it, and its SQL in the text that it comes from. */

import { ask } from "./connection.js";
import { bytes, h, length, number, percent, rate } from "./dom.js";
import { isOf } from "./graph.js";
import { facts } from "./streams.js";

/** @typedef {import("./types.js").Frame} Frame @typedef {import("./types.js").PictureNode} PictureNode */

export class Detail {
  /** @param {HTMLElement} room @param {() => void} closed */
  constructor(room, closed) {
    this.room = room;
    this.closed = closed;
    /** @type {PictureNode|null} */ this.node = null;
    this.facts = h("dl", { class: "facts-list" });
    this.source = h("div", {});
  }

  /** @param {PictureNode} node */
  async open(node) {
    this.node = node;
    this.room.hidden = false;
    const close = h("button", { type: "button", class: "small", click: () => this.close() }, "Close");
    const used = node.kind !== "query" && node.queries.length ? `works for ${node.queries.join(", ")}` : "";
    this.source.replaceChildren();
    this.room.replaceChildren(h("h3", {}, node.title, h("span", { class: "spring" }), close),
      h("p", { class: "sentence" }, node.text), h("p", { class: "quiet" }, used), this.facts, this.source);
    close.focus();
    const texts = await ask("/page/text");
    if (this.node === node) this.source.replaceChildren(...sourceText(texts, node));
  }

  close() {
    this.node = null;
    this.room.hidden = true;
    this.closed();
  }

  /** @param {Frame} frame */
  show(frame) {
    if (!this.node) return;
    const told = frame.operators[this.node.name];
    this.facts.replaceChildren(...(told ? facts([
      ["In", `${rate(told.in_rate)}, ${number(told.rows_in)} in all`],
      ["Out", `${rate(told.out_rate)}, ${number(told.rows_out)} in all`],
      ["Waiting at its inputs", number(told.waiting)],
      ["Holds", number(told.held)],
      ["State", bytes(told.state_bytes)],
      ["Cost", `${length(told.cost)} in all, busy ${percent(told.busy)}`],
      ["Idle-waiting", `${length(told.idle)} in all, now ${percent(told.idle_share)}`],
      ["Bound", told.bound ?? "none yet"],
      ["Punctuation", number(told.punctuations)],
    ]) : []));
  }
}

/**
 * The text of a node's first query, with what the node carries out marked.
 * @param {{text: string, queries: {query: string, span: [number, number], clauses: Object<string, [number, number]>}[]}[]} texts
 * @param {PictureNode} node
 */
function sourceText(texts, node) {
  for (const query of node.kind === "operator" ? node.queries : [node.name]) {
    for (const { text, queries } of [...texts].reverse()) {
      const place = queries.find((each) => isOf(query.toLowerCase(), each.query.toLowerCase()));
      if (!place) continue;
      const [first, last] = place.span, [from, to] = place.clauses[node.clause] ?? place.span;
      const marked = h("mark", {}, text.slice(from, to));
      const line = text.slice(0, first).split("\n").length;
      return [h("h4", {}, `SQL of ${place.query}, from line ${line} on`), h("pre", { class: "sql", tabindex: 0 },
        text.slice(first, from), marked, text.slice(to, last))];
    }
  }
  return [h("p", { class: "quiet" }, "It was built without a text.")];
}
