/** The queries: throughput, latency, staleness by key, last results and latest answers. */

import { ask } from "./connection.js";
import { Chart } from "./curves.js";
import { h, length, number, rate } from "./dom.js";
import { facts } from "./streams.js";

/** @typedef {import("./types.js").Frame} Frame @typedef {import("./types.js").QueryFrame} QueryFrame */
/** @typedef {import("./types.js").Picture} Picture @typedef {import("./curves.js").Hour} Hour */

const CELLS = 240, ROWS = 8, EVERY = 3000;

export class Queries {
  /**
   * @param {HTMLElement} room
   * @param {(statement: string) => void} propose shows what a statement would change
   * @param {(statement: string) => void} write lets a statement be changed first
   */
  constructor(room, propose, write) {
    this.room = room;
    this.propose = propose;
    this.write = write;
    /** @type {Map<string, QueryCard>} */ this.cards = new Map();
    setInterval(() => this.refresh(), EVERY);
    this.live = true;
  }

  /** @param {Frame} frame @param {Hour} hour @param {Picture} picture */
  show(frame, hour, picture) {
    const names = Object.keys(frame.queries);
    if (names.join() !== [...this.cards.keys()].join()) {
      this.cards = new Map(names.map((name) => [name, this.cards.get(name) ?? new QueryCard(name, this.propose, this.write)]));
      this.room.replaceChildren(...[...this.cards.values()].map((each) => each.card));
      this.refresh();
    }
    for (const [name, card] of this.cards) card.show(frame.queries[name], hour, picture.queries[name]?.sink ?? "");
    if (!Object.keys(frame.streams).length) this.cards.forEach((card) => { card.badge.textContent = "starting"; });
  }

  /** Ask for rows and staleness again, unless the page shows the past or is not seen. */
  refresh() {
    if (!this.live || document.hidden) return;
    for (const card of this.cards.values()) card.refresh();
  }

  forget() {
    for (const card of this.cards.values()) card.charts.forEach((each) => each.forget());
  }
}

class QueryCard {
  /** @param {string} name @param {(statement: string) => void} propose @param {(statement: string) => void} write */
  constructor(name, propose, write) {
    this.name = name;
    this.charts = [
      new Chart("Results per second", [{ name: `query/${name}/rate`, label: "results", color: "--blue" }], "rate"),
      new Chart("Latency", [{ name: `query/${name}/p50`, label: "p50", color: "--blue" },
        { name: `query/${name}/p99`, label: "p99", color: "--orange", dash: [5, 3] }], "length"),
    ];
    this.charts[1].figure.hidden = true;
    this.stale = new Chart("Staleness, mean of keys", [{ name: `query/${name}/staleness`, label: "staleness",
      color: "--purple" }], "length");
    this.hasQueue = false;
    this.sink = "";
    this.badge = h("span", { class: "badge" });
    this.wait = h("p", { class: "sentence" });
    this.facts = h("dl", { class: "facts-list" });
    this.heat = h("div", {});
    this.rows = h("div", {});
    this.answers = h("div", {});
    const quoted = /^[a-z_][a-z0-9_]*$/i.test(name) ? name : `"${name}"`;
    this.card = h("article", { class: "card", "data-query": name },
      h("h3", {}, name, this.badge, h("span", { class: "spring" }),
        h("button", { type: "button", class: "small", "aria-label": `Alter ${name}`,
          click: () => write(`ALTER QUERY ${quoted} SET (strategy = 'bfs')`) }, "Alter…"),
        h("button", { type: "button", class: "small", "aria-label": `Drop ${name}`,
          click: () => propose(`DROP QUERY ${quoted}`) }, "Drop…")),
      this.wait, this.facts, h("div", { class: "figures-row" }, ...this.charts.map((each) => each.figure)),
      this.heat, h("div", { class: "tables" }, this.answers, this.rows));
  }

  /** @param {QueryFrame} told @param {Hour} hour @param {string} sink */
  show(told, hour, sink) {
    this.sink = sink;
    this.card.classList.toggle("stuck", Boolean(told.wait?.stuck));
    this.badge.textContent = told.wait?.stuck ? "▮▮ held back" : told.wait ? "waits for the next rows"
      : told.queue?.waiting ? "keys wait in its queue" : "up to date";
    this.wait.textContent = told.wait ? told.wait.sentence : "";
    this.wait.className = told.wait?.stuck ? "sentence" : "quiet";
    const queue = told.queue;
    this.facts.replaceChildren(...facts([
      ["Throughput", rate(told.rate)],
      ["Results", number(told.rows)],
      ...(told.latency ? [["Latency p50", length(told.latency.p50)], ["Latency p99", length(told.latency.p99)]] : []),
      ["Held", told.wait ? number(told.wait.held) : "0"],
      ...(queue ? [["Queue", queue.policy], ["Keys", number(queue.keys)], ["Waiting keys", number(queue.waiting)],
        ["Superseded", number(queue.superseded)], ["Staleness", length(queue.staleness)]] : []),
      ...told.modes.map((each) => ["Mode", `${each.mode}${each.switches ? `, changed ${each.switches} ×` : ""}`]),
    ]));
    // Before the first results there is none.
    if (told.latency) this.charts[1].figure.hidden = false;
    if (queue && !this.hasQueue) {
      this.hasQueue = true;
      this.charts.push(this.stale);
      this.card.querySelector(".figures-row")?.append(this.stale.figure);
    }
    this.charts.forEach((each) => each.show(hour));
  }

  async refresh() {
    try {
      const path = encodeURIComponent(this.name);
      const results = await ask(`/page/results/${path}`);
      this.rows.replaceChildren(...table("Last results", results?.columns ?? [], (results?.rows ?? []).slice(-ROWS).reverse(),
        results || this.sink === "memory" || this.sink === "console" ? "none yet" : `they go to ${this.sink}`));
      if (!this.hasQueue) return;
      this.heat.replaceChildren(...heatMap(await ask(`/staleness/${path}`)));
      const answers = await ask(`/latest/${path}`);
      const columns = Object.keys(answers[0] ?? {});
      this.answers.replaceChildren(...table(`Latest answers of ${number(answers.length)} keys`, columns,
        answers.slice(0, ROWS).map((/** @type {any} */ row) => columns.map((each) => row[each])), "none yet"));
    } catch {
      // The run has ended, or the query has gone: what is shown stays.
    }
  }
}

/** @param {string} title @param {string[]} columns @param {any[][]} rows @param {string} otherwise */
export function table(title, columns, rows, otherwise) {
  if (!rows.length) return [h("p", { class: "quiet" }, `${title}: ${otherwise}`)];
  return [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, h("table", {},
    h("caption", {}, title), h("thead", {}, h("tr", {}, ...columns.map((each, place) =>
      h("th", { scope: "col", class: typeof rows[0][place] === "number" ? "right" : "" }, each)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((each) =>
      h("td", { class: typeof each === "number" ? "right" : "" }, each === null ? "NULL" : String(each))))))))];
}

/** How stale each key is, the most stale first. @param {any[]} rows */
function heatMap(rows) {
  if (!rows.length) return [];
  const stale = rows.map((row) => ({ key: keyOf(row), value: Number(row.application_now) / 1e6 }))
    .sort((one, other) => other.value - one.value);
  if (!stale[0].value) {
    return [h("p", { class: "quiet" }, "Staleness by key: no key is stale")];
  }
  const most = stale[0].value;
  const cells = stale.slice(0, CELLS).map(({ key, value }) => {
    const cell = h("span", { class: `heat heat-${Math.min(5, Math.floor(6 * Math.sqrt(value / most)))}`,
      title: `${key}: ${length(value)}` });
    return cell;
  });
  const top = stale.slice(0, 3).map(({ key, value }) => `${key} ${length(value)}`).join(", ");
  return [h("figure", {}, h("figcaption", {}, "Staleness by key"),
    h("div", { class: "heat-map", role: "img", "aria-label": `The most stale of ${rows.length} keys: ${top}` }, ...cells),
    h("p", { class: "scale" }, h("span", {}, `most stale: ${top}`),
      h("span", { class: "key" }, "0 s", ...[0, 1, 2, 3, 4, 5].map((each) => h("i", { class: `heat heat-${each}` })),
        length(most)),
      stale.length > CELLS ? h("span", {}, `${number(stale.length - CELLS)} keys more are fresher`) : null))];
}

/** @param {any} row */
function keyOf(row) {
  const figures = ["waiting", "queue_now", "queue_mean", "application_now", "application_mean", "per_second"];
  return Object.entries(row).filter(([name]) => !figures.includes(name)).map(([, value]) => String(value)).join(", ");
}
