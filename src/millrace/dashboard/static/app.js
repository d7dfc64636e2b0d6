/** The page: takes what the run sends, shows it, and lets time be paused and turned back. */

import { showBatches } from "./batches.js";
import { Changes } from "./changes.js";
import { ask, follow, setToken, token } from "./connection.js";
import { Hour } from "./curves.js";
import { Detail } from "./detail.js";
import { bytes, byId, length, timeOfDay } from "./dom.js";
import { Graph, stuckPath, whyCards } from "./graph.js";
import { Queries } from "./queries.js";
import { Streams } from "./streams.js";

/** @typedef {import("./types.js").Picture} Picture @typedef {import("./types.js").Frame} Frame */

/** Seconds without a figure until the page says so. */
const QUIET = 5;

class App {
  constructor() {
    this.hour = new Hour();
    this.heardAt = Date.now();
    this.trouble = "";
    /** @type {Picture|null} */ this.picture = null;
    /** @type {Frame|null} */ this.newest = null;
    /** @type {Frame|null} */ this.past = null;
    this.detail = new Detail(byId("detail"), () => {
      const name = this.graph.chosen;
      this.graph.select("");
      this.graph.focus(name);
    });
    this.graph = new Graph(byId("canvas"), (name) => this.choose(name));
    this.streams = new Streams(byId("streams"));
    this.changes = new Changes(byId("changes-body"));
    this.queries = new Queries(byId("queries"), (statement) => this.changes.propose(statement),
      (statement) => this.changes.write(statement));
    this.scrub = /** @type {HTMLInputElement} */ (byId("scrub"));
    this.pause = /** @type {HTMLButtonElement} */ (byId("pause"));
    this.scrub.addEventListener("input", () => this.turnTo(Number(this.scrub.value)));
    this.pause.addEventListener("click", () => this.setPaused(this.past === null));
    byId("theme").addEventListener("click", () => this.turnTheme());
    addEventListener("keydown", (event) => this.pressed(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    const theme = localStorage.getItem("millrace-theme");
    if (theme) document.documentElement.dataset.theme = theme;
    setInterval(() => this.watch(), 1000);
    token();
    follow((name, data) => this.told(name, data), askToken);
  }

  /** @param {string} name @param {any} data */
  told(name, data) {
    if (name === "open") this.opened();
    else if (name === "picture") this.draw(data);
    else if (name === "frame") this.take(data);
    else if (name === "trouble") this.trouble = data;
    else if (name === "end") this.status(data.error ? "failed" : "ended", data.error ?? "");
    else if (name === "lost" && !["ended", "failed"].includes(document.body.dataset.status ?? "")) this.status("lost");
  }

  async opened() {
    this.status("live");
    this.heardAt = Date.now();
    this.newest = null;
    this.hour = new Hour();
    this.setPaused(false);
    this.hour.load(await ask("/page/curves"));
  }

  /** Say so if the run tells nothing, though it is connected. */
  watch() {
    if (document.body.dataset.status !== "live" || Date.now() - this.heardAt < QUIET * 1000) return;
    const since = new Date(this.heardAt).toLocaleTimeString("en-GB");
    this.status("stale", `${since}: ${this.trouble || "the run is at work on one step"}`);
  }

  /** @param {"live"|"stale"|"paused"|"lost"|"ended"|"failed"} status @param {string} [words] */
  status(status, words = "") {
    document.body.dataset.status = status;
    const texts = { live: "live", stale: `no figures since ${words}`, paused: "paused", lost: "no connection: trying again", failed: `failed: ${words}`,
      ended: "the run has ended: waiting for the next" };
    byId("status").textContent = texts[status];
  }

  /** @param {Picture} picture */
  draw(picture) {
    this.picture = picture;
    this.graph.draw(picture);
    if (this.detail.node && !picture.nodes.some((each) => each.name === this.detail.node?.name)) this.detail.close();
  }

  /** @param {Frame} frame */
  take(frame) {
    this.newest = frame;
    this.heardAt = Date.now();
    this.trouble = "";
    if (document.body.dataset.status === "stale") this.status("live");
    this.hour.add(frame);
    this.scrub.max = String(frame.number);
    this.scrub.min = String(this.hour.numbers[0]);
    this.scrub.disabled = false;
    if (this.past === null) {
      this.scrub.value = String(frame.number);
      this.show(frame);
    }
  }

  /** @param {Frame} frame */
  show(frame) {
    if (!this.picture) return;
    const path = stuckPath(this.picture, frame);
    document.title = path.waiting.size ? "▮▮ held back · Millrace" : "Millrace";
    const age = frame.age > 2 ? ` · figures of ${length(frame.age)} ago, the last commit` : "";
    byId("facts").textContent =
      `${timeOfDay(frame.clock)} · up ${length(frame.elapsed)} · state ${bytes(frame.state_bytes)}${age}`;
    byId("queries-past").hidden = this.past === null;
    byId("moment").textContent = this.past === null ? "now" : new Date(frame.at * 1000).toLocaleTimeString("en-GB");
    byId("why").replaceChildren(...whyCards(frame));
    this.hour.moment = this.past === null ? null : frame.at;
    this.graph.show(frame);
    this.streams.show(frame, this.hour, path.causes);
    this.queries.show(frame, this.hour, this.picture);
    showBatches(byId("batches"), byId("batches-body"), frame.batches);
    this.detail.show(frame);
  }

  /** @param {string} name */
  choose(name) {
    const node = this.picture?.nodes.find((each) => each.name === name);
    if (!node) return;
    this.graph.select(name);
    this.detail.open(node);
    const frame = this.past ?? this.newest;
    if (frame) this.detail.show(frame);
  }

  // Time

  /** @param {boolean} paused */
  setPaused(paused) {
    this.past = paused ? this.newest : null;
    this.queries.live = !paused;
    this.pause.textContent = paused ? "Go on" : "Pause";
    this.pause.setAttribute("aria-pressed", String(paused));
    if (["live", "stale", "paused"].includes(document.body.dataset.status ?? "")) {
      this.status(paused ? "paused" : "live");
    }
    if (!paused && this.newest) this.take(this.newest);
  }

  /** @param {number} number */
  async turnTo(number) {
    if (this.past === null) this.setPaused(true);
    const frame = await ask(`/page/frame/${number}`);
    // Another moment may have been chosen meanwhile.
    if (this.past === null || Number(this.scrub.value) !== number) return;
    this.past = frame;
    this.show(frame);
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (["INPUT", "TEXTAREA"].includes(target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "p") this.setPaused(this.past === null);
    else if (event.key === "t") this.turnTheme();
    else if (event.key === "Escape" && this.detail.node) this.detail.close();
    else if (event.key === "[" || event.key === "]") {
      this.scrub.value = String(Number(this.scrub.value) + (event.key === "[" ? -1 : 1));
      this.turnTo(Number(this.scrub.value));
    }
  }

  turnTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("millrace-theme", root.dataset.theme);
    this.recolour();
  }

  recolour() {
    this.streams.forget();
    this.queries.forget();
    const frame = this.past ?? this.newest;
    if (frame) this.show(frame);
  }
}

/** Ask for the token until one is given. @returns {Promise<void>} */
function askToken() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("token-dialog"));
  const input = /** @type {HTMLInputElement} */ (byId("token-input"));
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      setToken(input.value);
      resolve();
    }, { once: true });
    dialog.showModal();
  });
}

Object.assign(globalThis, { millrace: new App() });
