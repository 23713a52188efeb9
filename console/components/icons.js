// The few pictures there are, drawn here: no font has them all.
import { svg } from "../lib/dom.js";

const line = { fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" };

/** @param {string} d @param {object} [more] */
function icon(d, more) {
  return svg("svg", { viewBox: "0 0 16 16", width: "1em", height: "1em", "aria-hidden": "true", class: "icon-art" }, svg("path", { d, ...line, ...more }));
}

export const copyIcon = () => icon("M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z");
export const moreIcon = () => icon("M3 8h.01M8 8h.01M13 8h.01", { "stroke-width": 2.2 });
export const systemIcon = () => icon("M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12", {});
export const lightIcon = () => icon("M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1M8 14v1M1 8h1M14 8h1M3 3l.8.8M12.200 12.200l.8.8M13 3l-.8.8M3.800 12.200l-.8.8");
export const darkIcon = () => icon("M13.500 9.800A6 6 0 0 1 6.200 2.500a6 6 0 1 0 7.300 7.300Z");
export const closeIcon = () => icon("m4 4 8 8m0-8-8 8");
