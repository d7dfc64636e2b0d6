/** The streams: how far each has come, what became of its rows, and how far out of order they came. */

import { Chart } from "./curves.js";
import { ago, h, length, number, rate, timeOfDay } from "./dom.js";

/** @typedef {import("./types.js").Frame} Frame @typedef {import("./types.js").StreamFrame} StreamFrame */
/** @typedef {import("./types.js").Disorder} Disorder @typedef {import("./curves.js").Hour} Hour */

export class Streams {
  /** @param {HTMLElement} room */
  constructor(room) {
    this.room = room;
    /** @type {Map<string, StreamCard>} */ this.cards = new Map();
  }

  /** @param {Frame} frame @param {Hour} hour @param {Set<string>} causes */
  show(frame, hour, causes) {
    const names = Object.keys(frame.streams);
    if (names.join() !== [...this.cards.keys()].join()) {
      this.cards = new Map(names.map((name) => [name, this.cards.get(name) ?? new StreamCard(name)]));
      this.room.replaceChildren(...[...this.cards.values()].map((each) => each.card));
    }
    for (const [name, card] of this.cards) card.show(frame.streams[name], hour, causes.has(name));
  }

  forget() {
    for (const card of this.cards.values()) card.charts.forEach((each) => each.forget());
  }
}

class StreamCard {
  /** @param {string} name */
  constructor(name) {
    this.charts = [new Chart("Rows per second", [{ name: `stream/${name}/rate`, label: "rows", color: "--blue" }], "rate")];
    this.badge = h("span", { class: "badge" });
    this.contract = h("p", { class: "quiet" });
    this.facts = h("dl", { class: "facts-list" });
    this.parts = h("div", {});
    this.disorder = h("div", {});
    this.card = h("article", { class: "card", "data-stream": name }, h("h3", {}, name, this.badge), this.contract,
      this.facts, this.parts, this.disorder, ...this.charts.map((each) => each.figure));
  }

  /** @param {StreamFrame} told @param {Hour} hour @param {boolean} cause */
  show(told, hour, cause) {
    this.card.classList.toggle("stuck", cause);
    this.badge.textContent = cause ? "▮▮ holds results back" : stateOf(told);
    this.contract.textContent = told.contract;
    this.facts.replaceChildren(...facts([
      ["Rate", rate(told.rate)],
      ["Received", number(told.received)],
      ["Event time behind the clock", told.ended ? "ended" : length(told.lag)],
      ["Last heard", told.heard === null ? "never" : ago(told.heard)],
      ["Bound", timeOfDay(told.bound)],
      ["Bound moved", told.bound_age === null ? "–" : ago(told.bound_age)],
      ["Late", number(told.late), told.late > 0],
      ["Quarantined", number(told.quarantined), told.quarantined > 0],
      ["Waiting", number(told.buffered)],
      ...(told.superseded ? [["Superseded", number(told.superseded)]] : []),
      ...(told.shed ? [["Shed", number(told.shed), true]] : []),
      ["ETS made", number(told.ets)],
    ]));
    this.parts.replaceChildren(...partList(told));
    this.disorder.replaceChildren(...(told.disorder ? [histogram(told.disorder)] : []));
    this.charts.forEach((each) => each.show(hour));
  }
}

/** What a stream does, in a word. @param {StreamFrame} told */
export function stateOf(told) {
  if (told.ended) return "ended";
  if (told.heard === null) return "no row yet";
  return told.heard > 2 && (told.silent || !told.rate) ? "silent" : "flowing";
}

/** @param {any[][]} rows */
export function facts(rows) {
  return rows.map(([name, text, alert]) => h("div", { class: alert ? "alert" : "" }, h("dt", {}, name), h("dd", {}, text)));
}

/** @param {StreamFrame} told */
function partList(told) {
  if (!told.parts.length) return [];
  return [h("h4", {}, "Furthest behind"), h("ul", { class: "parts" }, ...told.parts.map((each) =>
    h("li", {}, `${each.name}: bound ${timeOfDay(each.bound)}, ` +
      (each.heard === null ? "no row yet" : `heard ${ago(each.heard)}`))))];
}

/** Disorder seen against disorder declared. @param {Disorder} told */
function histogram(told) {
  const most = Math.max(...told.bars.map(([, count]) => Math.log10(1 + count)));
  const declared = told.declared;
  const bars = told.bars.map(([least, count]) => {
    const bar = h("span", { class: declared !== null && least > declared ? "bar beyond" : "bar",
      title: `from ${length(least)} on: ${number(count)} rows` });
    bar.style.height = `${Math.max(4, 100 * Math.log10(1 + count) / most)}%`;
    return bar;
  });
  return h("figure", { class: "disorder" }, h("figcaption", {}, "Disorder, seen and declared"),
    h("p", { class: "sentence" }, told.sentence), told.advice ? h("p", { class: "quiet" }, told.advice) : null,
    h("div", { class: "bars", role: "img", "aria-label": `Rows by how far behind they came, up to ${length(told.max)}` },
      ...bars),
    h("p", { class: "scale" }, h("span", {}, "in order"), h("span", {}, told.max ? `up to ${length(told.max)} behind` : "")));
}
