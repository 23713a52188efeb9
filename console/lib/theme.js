// Light, dark, or as the system says. The choice is an attribute of the page; the palette follows it by itself.
import { signal } from "./signal.js";

/** @typedef {"system" | "light" | "dark"} Theme */
const NAME = "baton.theme";
/** @type {Theme[]} */
export const THEMES = ["system", "light", "dark"];

export const theme = signal(read());

/** @returns {Theme} */
function read() {
  const stored = localStorage.getItem(NAME);
  return THEMES.find((one) => one === stored) ?? "system";
}

/** @param {Theme} next */
export function setTheme(next) {
  localStorage.setItem(NAME, next);
  theme.value = next;
  applyTheme();
}

export function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(theme.peek()) + 1) % THEMES.length] ?? "system");
}

export function applyTheme() {
  document.documentElement.dataset.theme = theme.peek();
}
