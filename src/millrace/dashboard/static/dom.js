/** Elements, and numbers in words. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element with attributes and children; a function among the attributes listens to its event.
 * @param {string} tag
 * @param {Object<string, any>} [attributes]
 * @param {...(Node|string|number|null|false|undefined)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  return /** @type {HTMLElement} */ (filled(document.createElement(tag), attributes, children));
}

/**
 * The same for SVG.
 * @param {string} tag
 * @param {Object<string, any>} [attributes]
 * @param {...(Node|string|number|null|false|undefined)} children
 * @returns {SVGElement}
 */
export function s(tag, attributes = {}, ...children) {
  return /** @type {SVGElement} */ (filled(document.createElementNS(SVG, tag), attributes, children));
}

/** @param {Element} element @param {Object<string, any>} attributes @param {any[]} children */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((each) => each !== null && each !== undefined && each !== false).map((each) =>
    typeof each === "number" ? String(each) : each));
  return element;
}

/** The element of an id. @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element "${id}"`);
  return found;
}

/** A count as people read it: 950, 12.3k, 4.5M. @param {number} count */
export function number(count) {
  if (!Number.isFinite(count)) return "-";
  const size = Math.abs(count);
  if (size >= 1e9) return `${(count / 1e9).toPrecision(3)}G`;
  if (size >= 1e6) return `${(count / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${(count / 1e3).toPrecision(3)}k`;
  if (size >= 100 || Number.isInteger(count)) return Math.round(count).toLocaleString("en");
  return String(Number(count.toPrecision(2)));
}

/** Rows per second. @param {number|null|undefined} value */
export function rate(value) {
  return value === null || value === undefined ? "–" : `${number(value)} rows/s`;
}

/** A length of time. @param {number|null|undefined} seconds */
export function length(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (size < 1) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  if (size < 60) return `${Number(seconds.toPrecision(3))} s`;
  if (size < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (size < 86400) return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
  return `${number(Math.round(seconds / 86400))} d`;
}

/** How long ago, in whole seconds: less than one is now. @param {number} seconds */
export function ago(seconds) {
  return seconds < 1 ? "just now" : `${length(seconds < 60 ? Math.floor(seconds) : seconds)} ago`;
}

/** @param {number} count */
export function bytes(count) {
  if (count >= 2 ** 30) return `${(count / 2 ** 30).toPrecision(3)} GiB`;
  if (count >= 2 ** 20) return `${(count / 2 ** 20).toPrecision(3)} MiB`;
  if (count >= 1024) return `${(count / 1024).toPrecision(3)} KiB`;
  return `${count} B`;
}

/** @param {number|null|undefined} share */
export function percent(share) {
  if (share === null || share === undefined) return "–";
  return `${share < 0.1 && share > 0 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;
}

/** The time of day in a time. @param {string|null|undefined} time */
export function timeOfDay(time) {
  if (!time) return "–";
  const found = /\d{2}:\d{2}:\d{2}(\.\d)?/.exec(time);
  return found ? found[0] : time;
}

/** A text of at most so many characters. @param {string} text @param {number} most */
export function short(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
