/** The query graph as a live picture. */

import { ago, bytes, h, length, number, percent, rate, s, short, timeOfDay } from "./dom.js";
import { stateOf } from "./streams.js";

/** @typedef {import("./types.js").Picture} Picture @typedef {import("./types.js").Frame} Frame */
/** @typedef {import("./types.js").PictureNode} PictureNode @typedef {import("./types.js").PictureArc} PictureArc */

const WIDTH = 206, HEIGHT = 76, LINES = 3;
/** A project holds nothing and never waits: a smaller box is enough. */
const SMALL_WIDTH = 124, SMALL_HEIGHT = 46;
const LEAST_SCALE = 0.6;

export class Graph {
  /**
   * @param {HTMLElement} canvas
   * @param {(name: string) => void} choose called with the node that is clicked
   */
  constructor(canvas, choose) {
    this.canvas = canvas;
    this.choose = choose;
    /** @type {Picture|null} */
    this.picture = null;
    /** @type {Map<string, {group: SVGElement, corner: SVGElement, lines: SVGElement[], node: PictureNode}>} */
    this.nodes = new Map();
    /** @type {{arc: PictureArc, path: SVGElement, flow: SVGElement, label: SVGElement, lines: SVGElement[]}[]} */
    this.arcs = [];
    this.chosen = "";
    this.upright = false;
    /** @type {Frame|null} */
    this.frame = null;
    new ResizeObserver(() => this.resized()).observe(canvas);
  }

  resized() {
    if (this.picture && isUpright(this.picture, this.widest()) !== this.upright) this.draw(this.picture);
    else this.fit();
  }

  /** The room that there is without an operator's figures beside it. */
  widest() {
    return (this.canvas.parentElement ?? this.canvas).clientWidth - 2;
  }

  /** Lay the picture out and draw it. @param {Picture} picture */
  draw(picture) {
    this.picture = picture;
    this.upright = isUpright(picture, this.widest());
    const layout = laidOut(picture, this.upright);
    const size = layout.graph();
    this.width = (size.width ?? 0) + 16;
    this.height = (size.height ?? 0) + 16;
    const root = s("svg", { viewBox: `-8 -8 ${this.width} ${this.height}`, role: "group",
      "aria-label": `Query graph of ${picture.nodes.length} nodes` }, marker("arrow"), marker("arrow-stuck"));
    this.arcs = picture.arcs.map((arc) => this.arc(layout, arc));
    root.append(...this.arcs.flatMap((each) => [each.path, each.flow]), ...this.arcs.map((each) => each.label));
    this.nodes = new Map(picture.nodes.map((node) => [node.name, this.node(layout, node)]));
    root.append(...[...this.nodes.values()].map((each) => each.group));
    this.canvas.replaceChildren(root);
    this.root = root;
    this.fit();
    this.mark();
    if (this.frame) this.show(this.frame);
  }

  /** As large as it is, unless it is too wide: then smaller, but so that it can be read. */
  fit() {
    if (!this.root || !this.width) return;
    const scale = Math.max(LEAST_SCALE, scaleOf(this.width, this.canvas.clientWidth - 2));
    this.root.setAttribute("width", String(this.width * scale));
    this.root.setAttribute("height", String(this.height * scale));
  }

  /** Give the keyboard back to a node. @param {string} name */
  focus(name) {
    this.nodes.get(name)?.group.focus();
  }

  /** @param {any} layout @param {PictureNode} node */
  node(layout, node) {
    const { x, y } = layout.node(node.name);
    const { width, height } = sizeOf(node), small = height === SMALL_HEIGHT;
    const left = x - width / 2, top = y - height / 2;
    const lines = Array.from({ length: small ? 2 : LINES }, (_, line) =>
      s("text", { x: left + 10, y: top + 34 + line * 15, class: line ? "figures" : "what" }));
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(node.name);
    };
    const corner = s("text", { x: left + width - 10, y: top + 18, class: "badge", "text-anchor": "end" });
    const group = s("g", { class: `node ${node.kind}`, tabindex: 0, role: "button", "data-node": node.name,
      click: () => this.choose(node.name), keydown: pressed },
      s("rect", { x: left, y: top, width, height, rx: node.kind === "operator" ? 5 : 14 }),
      s("title", {}, node.text),
      s("text", { x: left + 10, y: top + 18, class: "title" }, short(node.title, small ? 14 : 24)),
      corner, ...(small ? lines.slice(1) : lines));
    if (small) lines[1].setAttribute("y", String(top + 35));
    lines[0].textContent = short(node.kind === "operator" ? node.text.replace(`${node.title} `, "") : node.text, 31);
    return { group, corner, lines, node };
  }

  /** @param {any} layout @param {PictureArc} arc */
  arc(layout, arc) {
    const found = layout.edge(arc.producer, arc.consumer, String(arc.port));
    const points = line(found.points);
    const path = s("path", { d: points, class: `arc${arc.exchange ? " exchange" : ""}`, "marker-end": "url(#arrow)" });
    const flow = s("path", { d: points, class: "flow" });
    const lines = [0, 1, 2].map((row) => s("text", { x: found.x, y: found.y - 3 + row * 12, "text-anchor": "middle" }));
    const label = s("g", { class: "arc-label" }, ...lines);
    if (arc.exchange) path.append(s("title", {}, `exchange ${arc.exchange}`));
    return { arc, path, flow, label, lines };
  }

  /** Show a frame. @param {Frame} frame */
  show(frame) {
    this.frame = frame;
    if (!this.picture) return;
    const path = stuckPath(this.picture, frame);
    for (const [name, { group, corner, lines, node }] of this.nodes) {
      const told = nodeLines(node, frame);
      lines[1].textContent = lines.length < LINES ? told.small : told.lines[0];
      if (lines.length === LINES) lines[2].textContent = told.lines[1];
      const stuck = path.nodes.has(name);
      group.classList.toggle("stuck", stuck);
      group.classList.toggle("cause", path.causes.has(name));
      const badge = lines.length < LINES ? "" : path.causes.has(name) ? "▮▮ waited for" : path.waiting.has(name) ? "▮▮ held back" : told.badge;
      corner.textContent = badge;
      group.setAttribute("aria-label", `${node.kind} ${node.title}, ${badge ? `${badge.replace("▮▮ ", "")}, ` : ""}` +
        `${told.lines.join(", ")}. ${node.text}`);
    }
    const known = new Map(frame.arcs.map(([start, end, port, rows, bound]) => [`${start}\n${end}\n${port}`,
      { rows, bound }]));
    for (const { arc, path: drawn, flow, label, lines } of this.arcs) {
      const flowing = outRate(frame, this.nodes.get(arc.producer)?.node, arc.producer);
      const told = known.get(`${arc.producer}\n${arc.consumer}\n${arc.port}`);
      const stuck = path.nodes.has(arc.producer) && path.nodes.has(arc.consumer);
      drawn.classList.toggle("stuck", stuck);
      drawn.setAttribute("marker-end", stuck ? "url(#arrow-stuck)" : "url(#arrow)");
      label.classList.toggle("stuck", stuck);
      flow.classList.toggle("moving", Boolean(flowing));
      flow.style.animationDuration = `${Math.max(0.25, 2.2 - 0.5 * Math.log10(1 + (flowing ?? 0)))}s`;
      const words = [flowing === null ? "" : `${number(flowing)}/s`, told?.bound ? `≥ ${timeOfDay(told.bound)}` : "",
        told?.rows ? `${number(told.rows)} queued` : ""].filter(Boolean);
      lines.forEach((each, place) => { each.textContent = words[place] ?? ""; });
      drawn.setAttribute("data-rate", String(flowing ?? ""));
    }
  }

  /** @param {string} name */
  select(name) {
    this.chosen = name;
    this.mark();
  }

  mark() {
    for (const [name, { group }] of this.nodes) group.classList.toggle("chosen", name === this.chosen);
  }
}

/** @param {PictureNode} node */
function sizeOf(node) {
  return node.title === "project" ? { width: SMALL_WIDTH, height: SMALL_HEIGHT } : { width: WIDTH, height: HEIGHT };
}

/** True if the picture goes from top to bottom, as from left to right it is too wide. @param {Picture} picture @param {number} room */
function isUpright(picture, room) {
  const [across, upright] = [false, true].map((each) => scaleOf((laidOut(picture, each).graph().width ?? 0) + 16, room));
  return room < 640 || across < Math.min(LEAST_SCALE, upright);
}

/** @param {number} width @param {number} room */
function scaleOf(width, room) {
  return Math.min(1, room / width);
}

/** @param {Picture} picture @param {boolean} upright */
function laidOut(picture, upright) {
  const layout = new dagre.graphlib.Graph({ multigraph: true });
  layout.setGraph({ rankdir: upright ? "TB" : "LR", nodesep: 22, ranksep: upright ? 34 : 14, edgesep: 14 });
  layout.setDefaultEdgeLabel(() => ({}));
  for (const node of picture.nodes) layout.setNode(node.name, sizeOf(node));
  for (const arc of picture.arcs) {
    const room = { width: upright ? 72 : 80, height: 38, labelpos: "c" };
    layout.setEdge(arc.producer, arc.consumer, room, String(arc.port));
  }
  dagre.layout(layout);
  return layout;
}

/** @param {{x: number, y: number}[]} points */
function line(points) {
  const [first, ...rest] = points;
  let path = `M${first.x},${first.y}`;
  for (let place = 0; place < rest.length - 1; place++) {
    const here = rest[place], next = rest[place + 1];
    const x = place === rest.length - 2 ? next.x : (here.x + next.x) / 2;
    const y = place === rest.length - 2 ? next.y : (here.y + next.y) / 2;
    path += ` Q${here.x},${here.y} ${x},${y}`;
  }
  return rest.length === 1 ? `${path} L${rest[0].x},${rest[0].y}` : path;
}

/** @param {string} id */
function marker(id) {
  return s("defs", {}, s("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9,
    markerUnits: "userSpaceOnUse",
    orient: "auto-start-reverse" }, s("path", { d: "M0,0 L8,4 L0,8 z" })));
}

/** Rows per second that leave a node. @param {Frame} frame @param {PictureNode|undefined} node @param {string} name */
function outRate(frame, node, name) {
  if (node?.kind === "stream") return frame.streams[name]?.rate ?? null;
  return frame.operators[name]?.out_rate ?? null;
}

/** What a node says of itself in two lines and a badge. @param {PictureNode} node @param {Frame} frame */
function nodeLines(node, frame) {
  if (node.kind === "stream") {
    const told = frame.streams[node.name];
    if (!told) return { lines: ["", ""], small: "", badge: "" };
    const state = stateOf(told);
    const heard = told.ended ? "ended" : told.heard === null ? "no row yet" : `heard ${ago(told.heard)}`;
    return { lines: [`${rate(told.rate)} · ${heard}`, `bound ${timeOfDay(told.bound)}`],
      badge: state === "ended" || state === "silent" ? state : "", small: "" };
  }
  if (node.kind === "query") {
    const told = frame.queries[node.name];
    if (!told) return { lines: ["", ""], small: "", badge: "" };
    const latency = told.latency ? `p99 ${length(told.latency.p99)}` : "";
    return { lines: [`${rate(told.rate)} · ${number(told.rows)} in all`, latency], small: "", badge: "" };
  }
  const told = frame.operators[node.name];
  if (!told) return { lines: ["no figures yet", ""], small: "no figures yet", badge: "" };
  const held = told.held ? `holds ${number(told.held)} · ` : "";
  return { lines: [`in ${rate(told.in_rate)} · busy ${percent(told.busy)}`,
    `${held}${bytes(told.state_bytes)} · idle ${percent(told.idle_share)}`],
    small: `in ${number(told.in_rate ?? 0)}/s · busy ${Math.round(100 * (told.busy ?? 0))} %`, badge: "" };
}

/**
 * The nodes between a stream that stands still and the queries that it holds back.
 * @param {Picture} picture @param {Frame} frame
 */
export function stuckPath(picture, frame) {
  const found = { nodes: new Set(), causes: new Set(), waiting: new Set() };
  for (const [query, told] of Object.entries(frame.queries)) {
    if (!told.wait?.stuck) continue;
    const above = reached(picture, query, "consumer", "producer");
    for (const source of picture.nodes) {
      const own = source.kind === "stream" && isOf(source.name, told.wait.stream);
      if (!own || !above.has(source.name)) continue;
      const below = reached(picture, source.name, "producer", "consumer");
      for (const name of below) if (above.has(name)) found.nodes.add(name);
      found.causes.add(source.name);
      found.waiting.add(query);
    }
  }
  return found;
}

/** True if a node is a stream or an outlet of it, which is named after it. @param {string} node @param {string} stream */
export function isOf(node, stream) {
  return node === stream || node.startsWith(`${stream}.`) || node.startsWith(`${stream}#`);
}

/** @param {Picture} picture @param {string} start @param {"producer"|"consumer"} here @param {"producer"|"consumer"} there */
function reached(picture, start, here, there) {
  const found = new Set([start]), open = [start];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    for (const arc of picture.arcs) {
      if (arc[here] === name && !found.has(arc[there])) {
        found.add(arc[there]);
        open.push(arc[there]);
      }
    }
  }
  return found;
}

/** The sentences about what holds results back. @param {Frame} frame @returns {HTMLElement[]} */
export function whyCards(frame) {
  if (!Object.keys(frame.streams).length) {
    return [h("p", { class: "starting" }, "The run is starting: figures come with its first micro-batch.")];
  }
  const waits = Object.entries(frame.queries).flatMap(([query, told]) => told.wait ? [{ query, wait: told.wait }] : []);
  const stuck = waits.filter((each) => each.wait.stuck);
  if (!stuck.length) {
    const calm = waits.length ? "Nothing is held back: what waits, waits for the next rows." : "Nothing waits.";
    return [h("p", { class: "calm" }, h("span", { class: "mark", "aria-hidden": "true" }, "✓"), calm)];
  }
  return stuck.map(({ query, wait }) => h("article", { class: "why stuck", "data-query": query },
    h("h3", {}, h("span", { class: "mark", "aria-hidden": "true" }, "▮▮"), wait.sentence),
    h("ul", {}, ...wait.lines.map((line) => h("li", {}, line)))));
}
