/** Curves over the last hour, drawn by uPlot. */

import { h, length, number } from "./dom.js";

/** @typedef {import("./types.js").Curves} Curves @typedef {import("./types.js").Frame} Frame */

const REACH = 3600;

/** What a frame adds to the curves, by the names of dashboard/frame_history.py. @param {Frame} frame */
function values(frame) {
  /** @type {Object<string, number|null|undefined>} */
  const found = {};
  for (const [name, told] of Object.entries(frame.streams)) {
    found[`stream/${name}/rate`] = told.rate;
    found[`stream/${name}/lag`] = told.lag;
  }
  for (const [name, told] of Object.entries(frame.queries)) {
    found[`query/${name}/rate`] = told.rate;
    found[`query/${name}/p50`] = told.latency?.p50;
    found[`query/${name}/p99`] = told.latency?.p99;
    found[`query/${name}/staleness`] = told.queue?.staleness;
  }
  return found;
}

/** The last hour as columns. */
export class Hour {
  constructor() {
    /** @type {number[]} */ this.numbers = [];
    /** @type {number[]} */ this.times = [];
    /** @type {Map<string, (number|null)[]>} */ this.columns = new Map();
    /** The moment of the past that is shown. @type {number|null} */ this.moment = null;
  }

  /** Begin with what the server kept. @param {Curves} curves */
  load(curves) {
    this.numbers = curves.numbers;
    this.times = curves.times;
    this.columns = new Map(Object.entries(curves.values));
  }

  /** @param {Frame} frame */
  add(frame) {
    if (this.numbers.length && frame.number <= this.numbers[this.numbers.length - 1]) return;
    this.numbers.push(frame.number);
    this.times.push(frame.at);
    const told = values(frame);
    for (const name of new Set([...this.columns.keys(), ...Object.keys(told)])) {
      const column = this.columns.get(name) ?? new Array(this.times.length - 1).fill(null);
      column.push(told[name] ?? null);
      this.columns.set(name, column);
    }
    while (this.times.length && this.times[0] < frame.at - REACH) {
      this.numbers.shift();
      this.times.shift();
      for (const column of this.columns.values()) column.shift();
    }
  }

  /** @param {string} name */
  of(name) {
    return this.columns.get(name) ?? new Array(this.times.length).fill(null);
  }
}

/** A small chart of some curves of the hour. */
export class Chart {
  /**
   * @param {string} title
   * @param {{name: string, label: string, color: string, dash?: number[]}[]} series
   * @param {"rate"|"length"} unit
   */
  constructor(title, series, unit) {
    this.series = series;
    this.unit = unit;
    this.title = title;
    this.room = h("div", { class: "plot" });
    this.figure = h("figure", {}, h("figcaption", {}, title,
      ...(series.length > 1 ? series.map((each) => legend(each)) : [])), this.room);
    /** @type {any} */ this.plot = null;
    /** @type {number|null} */ this.moment = null;
  }

  /** @param {Hour} hour */
  show(hour) {
    this.moment = hour.moment;
    const data = [hour.times, ...this.series.map((each) => hour.of(each.name))];
    const width = this.room.clientWidth;
    if (!width) return;
    if (!this.plot) this.plot = new uPlot(this.options(width), data, this.room);
    else {
      if (this.plot.width !== width) this.plot.setSize({ width, height: 92 });
      this.plot.setData(data);
    }
    const last = data[1][data[1].length - 1];
    this.room.setAttribute("role", "img");
    this.room.setAttribute("aria-label", `${this.title}: ${last === null || last === undefined ? "nothing yet"
      : this.text(last)} at last`);
  }

  /** @param {number} value */
  text(value) {
    return this.unit === "rate" ? number(value) : length(value);
  }

  /** @param {number} width */
  options(width) {
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue("--faint").trim(), grid = css.getPropertyValue("--line").trim();
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    return {
      width, height: 92, legend: { show: false }, cursor: { show: false }, padding: [6, 26, 0, 0],
      scales: { x: { time: true }, y: { range: (/** @type {any} */ _, /** @type {number} */ __,
        /** @type {number} */ most) => [0, most > 0 ? most * 1.1 : 1] } },
      axes: [{ ...axis, size: 22, space: 64, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(clock) }, { ...axis, size: 58, space: 26,
        values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map((each) => this.text(each)) }],
      hooks: { draw: [(/** @type {any} */ plot) => this.markMoment(plot, ink)] },
      series: [{}, ...this.series.map((each) => ({ stroke: css.getPropertyValue(each.color).trim(), width: 1.6,
        dash: each.dash, points: { show: false }, spanGaps: false }))],
    };
  }

  /** A line where the page shows the past. @param {any} plot @param {string} ink */
  markMoment(plot, ink) {
    if (this.moment === null) return;
    plot.ctx.fillStyle = ink;
    plot.ctx.fillRect(Math.round(plot.valToPos(this.moment, "x", true)), plot.bbox.top, 2, plot.bbox.height);
  }

  /** Draw it again, in other colours. */
  forget() {
    this.plot?.destroy();
    this.plot = null;
  }
}

/** The time of day; seconds only where they are not whole minutes. @param {number} at */
function clock(at) {
  const text = new Date(at * 1000).toLocaleTimeString("en-GB");
  return text.endsWith(":00") ? text.slice(0, 5) : text;
}

/** @param {{label: string, color: string, dash?: number[]}} series */
function legend(series) {
  const swatch = h("i", { class: "swatch-line", "aria-hidden": "true" });
  swatch.style.borderTopColor = `var(${series.color})`;
  swatch.style.borderTopStyle = series.dash ? "dashed" : "solid";
  return h("span", { class: "key" }, swatch, series.label);
}
