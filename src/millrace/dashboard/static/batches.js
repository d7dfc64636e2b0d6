/** Micro-batches on Spark: where their time went, their state, and how evenly the buckets are filled. */

import { bytes, h, length, number } from "./dom.js";

/** @typedef {import("./types.js").BatchFrame} BatchFrame */

const SHOWN = 40;
const PARTS = [
  ["latestOffset", "offsets asked for", "part-1"], ["queryPlanning", "planning", "part-2"],
  ["walCommit", "offset log", "part-3"], ["addBatch", "tasks", "part-4"], ["commitOffsets", "commit log", "part-5"],
];

/** Our parts of a micro-batch in the order in which rows pass them, in words. */
const TASKS = [
  ["read", "files read"], ["low", "stamped, filtered, pre-aggregated"], ["pack", "packed for buckets"],
  ["open", "state read"], ["work", "windows and joins"], ["send", "results packed"], ["save", "state written"],
  ["write", "result files written"], ["commit", "results published"],
];

/** @param {HTMLElement} section @param {HTMLElement} room @param {BatchFrame[]} batches */
export function showBatches(section, room, batches) {
  section.hidden = !batches.length;
  if (!batches.length) return;
  const shown = batches.slice(-SHOWN), last = shown[shown.length - 1];
  const most = Math.max(...shown.map((each) => each.seconds), 0.001);
  const bars = shown.map((each) => {
    const column = h("span", { class: "batch", title: `micro-batch ${each.batch}: ${length(each.seconds)}` });
    for (const [part, , style] of PARTS) {
      const piece = h("span", { class: style });
      piece.style.height = `${100 * (each.spark[part] ?? 0) / most}%`;
      column.append(piece);
    }
    return column;
  });
  const tasks = TASKS.filter(([part]) => part in last.tasks);
  const longest = Math.max(...Object.values(last.tasks), 1e-6);
  room.replaceChildren(
    h("p", { class: "sentence" }, `Micro-batch ${last.batch} took ${length(last.seconds)}; the longest shown ${length(most)}.`),
    h("div", { class: "batches", role: "img", "aria-label": `The last ${shown.length} micro-batches by length` }, ...bars),
    h("ul", { class: "legend" }, ...PARTS.map(([, words, style]) => h("li", {}, h("i", { class: `swatch ${style}` }), words))),
    h("div", { class: "figures-row" },
      h("div", {}, h("h3", {}, "Our work in its tasks"), h("table", {}, h("tbody", {}, ...tasks.map(([part, words]) =>
        h("tr", {}, h("th", { scope: "row" }, words), h("td", { class: "right" }, length(last.tasks[part])),
          h("td", {}, meter(last.tasks[part] / longest))))))),
      h("div", {}, h("h3", {}, "State store"), h("table", {}, h("tbody", {}, ...Object.entries(last.state).map(([name, value]) =>
        h("tr", {}, h("th", { scope: "row" }, name.replace("_", " ")),
          h("td", { class: "right" }, name.startsWith("bytes") ? bytes(value) : number(value))))))),
      buckets(last)));
}

/** @param {BatchFrame} batch */
function buckets(batch) {
  const most = Math.max(...batch.buckets.map((each) => each.state_bytes), 1);
  const mean = batch.buckets.reduce((sum, each) => sum + each.state_bytes, 0) / Math.max(1, batch.buckets.length);
  const skew = mean > 0 ? most / mean : 1;
  return h("div", {}, h("h3", {}, `${batch.buckets.length} buckets`),
    h("p", { class: "sentence" }, `The fullest has ${skew.toFixed(1)} times the mean state; 1.0 is even.`),
    h("table", {}, h("thead", {}, h("tr", {}, ...["bucket", "rows held", "state"].map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, ...batch.buckets.map((each, place) =>
        h("tr", {}, h("th", { scope: "row" }, place + 1), h("td", { class: "right" }, number(each.held)),
          h("td", {}, meter(each.state_bytes / most), ` ${bytes(each.state_bytes)}`))))));
}

/** A bar of a length from 0 to 1. @param {number} share */
function meter(share) {
  const bar = h("span", { class: "meter" });
  bar.style.width = `${Math.max(1, 60 * share)}px`;
  return bar;
}
