// Every state of the console is an address under /console. Screens are found by path; the query is state within a
// screen and changes without mounting it again.
import { h } from "./dom.js";
import { batch, signal } from "./signal.js";

export const BASE = "/console";

/**
 * @typedef {object} Route
 * @property {string} path such as `/runs/:runId`
 * @property {() => Promise<{ default: import("../types.js").Screen }>} load
 * @property {string} [section] the part of the navigation it belongs to
 * @property {boolean} [public] needs no key
 */
/** @typedef {{ route: Route | null, path: string, params: Record<string, string> }} Place */

/** Where we are; changes only when the path does. */
export const place = signal(/** @type {Place} */ ({ route: null, path: "", params: {} }));
/** The query of the address. */
export const query = signal(new URLSearchParams());

/** @type {Route[]} */
let routes = [];

/** @param {Route[]} table */
export function startRouter(table) {
  routes = table;
  addEventListener("popstate", read);
  document.addEventListener("click", followLink);
  read();
}

function read() {
  const path = decodePath(location.pathname.slice(BASE.length)) || "/";
  const search = new URLSearchParams(location.search);
  // The path first: a screen that is about to go must not see the query of the next one.
  batch(() => {
    if (path !== place.peek().path || !place.peek().route) place.value = find(path);
    if (String(search) !== String(query.peek())) query.value = search;
  });
}

/** @param {string} path */
function decodePath(path) {
  return path.replace(/\/+$/, "");
}

/** @param {string} path @returns {Place} */
function find(path) {
  for (const route of routes) {
    const params = match(route.path, path);
    if (params) return { route, path, params };
  }
  return { route: null, path, params: {} };
}

/**
 * The parameters of a path that fits a pattern. `*rest` takes everything that is left.
 * @param {string} pattern @param {string} path @returns {Record<string, string> | null}
 */
export function match(pattern, path) {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  /** @type {Record<string, string>} */
  const params = {};
  for (const [index, part] of wanted.entries()) {
    if (part.startsWith("*")) {
      params[part.slice(1)] = given.slice(index).map(decode).join("/");
      return params;
    }
    const text = given[index];
    if (text === undefined) return null;
    if (part.startsWith(":") && text !== "") params[part.slice(1)] = decode(text);
    else if (part !== text) return null;
  }
  return wanted.length === given.length ? params : null;
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The address of a screen: `address("/runs/:runId", { runId }, { seq: 142 })`.
 * @param {string} path @param {Record<string, string>} [params] @param {Record<string, string | number | null | undefined>} [search]
 */
export function address(path, params = {}, search = {}) {
  const filled = path.replace(/:(\w+)/g, (_, name) => encodeURIComponent(params[name] ?? ""));
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value !== null && value !== undefined && value !== "") text.set(name, String(value));
  }
  const suffix = String(text);
  return `${BASE}${filled === "/" ? "" : filled}${suffix ? `?${suffix}` : ""}`;
}

/** @param {string} href from `address` @param {{ replace?: boolean }} [options] */
export function navigate(href, options = {}) {
  if (options.replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  read();
}

/**
 * Changes the query: `null` or the empty text takes a name away. Replaces the address by default, so that typing in a
 * filter does not fill the history.
 * @param {Record<string, string | number | null | undefined>} patch @param {{ push?: boolean }} [options]
 */
export function setQuery(patch, options = {}) {
  const next = new URLSearchParams(query.peek());
  for (const [name, value] of Object.entries(patch)) {
    if (value === null || value === undefined || value === "") next.delete(name);
    else next.set(name, String(value));
  }
  const suffix = String(next);
  navigate(`${location.pathname}${suffix ? `?${suffix}` : ""}`, { replace: !options.push });
}

/** @param {string} href @param {import("./dom.js").Props | null} props @param {...import("./dom.js").Child} children */
export function link(href, props, ...children) {
  return h("a", { href, ...props }, ...children);
}

/** Links within the console change the address without loading the page. @param {MouseEvent} event */
function followLink(event) {
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (event.defaultPrevented || !plain || !(event.target instanceof Element)) return;
  const anchor = event.target.closest("a[href]");
  if (!(anchor instanceof HTMLAnchorElement) || anchor.target || anchor.hasAttribute("download")) return;
  const ours = anchor.pathname === BASE || anchor.pathname.startsWith(`${BASE}/`);
  if (anchor.origin !== location.origin || !ours) return;
  event.preventDefault();
  navigate(anchor.pathname + anchor.search);
}
