// One registry of everything that can be done by key. The help, the command palette and the keyboard all read it, so
// none of them can forget something.
import { isTyping } from "./dom.js";
import { onEnd, signal } from "./signal.js";

/**
 * @typedef {object} Command
 * @property {string} label what it does, as a sentence without a full stop: "Open the selected run"
 * @property {string} [keys] `g r`, `Shift+ArrowLeft`, `/`; none for what only the palette offers
 * @property {string} group `Go to`, `List`, `Run`, …
 * @property {(event?: KeyboardEvent) => void} run
 * @property {() => boolean} [when] whether it applies now
 * @property {boolean} [typing] also while typing in a field
 * @property {boolean} [hidden] neither in the help nor in the palette
 */

/** @type {import("./signal.js").Signal<Command[]>} newest last; the newest wins */
export const commands = signal(/** @type {Command[]} */ ([]));

const SETTING = "baton.singleKeys";
/** Single keys get in the way of some assistive technology: they can be turned off in the help. */
export const singleKeys = signal(localStorage.getItem(SETTING) !== "off");

/** @param {boolean} on */
export function setSingleKeys(on) {
  localStorage.setItem(SETTING, on ? "on" : "off");
  singleKeys.value = on;
}

/** Adds commands until the scope around ends. @param {Command[]} added @returns {() => void} takes them away */
export function addCommands(added) {
  commands.update((all) => [...all, ...added]);
  const remove = () => commands.update((all) => all.filter((one) => !added.includes(one)));
  onEnd(remove);
  return remove;
}

const PATIENCE = 1200;
/** @type {string[]} */
let typed = [];
let typedAt = 0;

/** The name of a key as commands spell it. @param {KeyboardEvent} event */
export function nameOf(event) {
  const printable = event.key.length === 1;
  // Shift is part of what a printable key prints already.
  const shift = event.shiftKey && !printable ? "Shift+" : "";
  const mod = event.ctrlKey || event.metaKey ? "Mod+" : "";
  return `${mod}${event.altKey ? "Alt+" : ""}${shift}${event.key === " " ? "Space" : event.key}`;
}

/** @param {KeyboardEvent} event */
function press(event) {
  if (event.defaultPrevented || event.isComposing || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
  if (document.querySelector("dialog[open], [popover]:popover-open")) return;
  const name = nameOf(event);
  const typing = isTyping(event.target);
  if (event.timeStamp - typedAt > PATIENCE) typed = [];
  typedAt = event.timeStamp;
  typed = [...typed, name].slice(-2);
  const wanted = [typed.join(" "), name];
  for (const keys of new Set(wanted)) {
    const found = commands.peek().findLast((one) => one.keys === keys && (one.when?.() ?? true));
    if (!found || (typing && !found.typing)) continue;
    if (!singleKeys.peek() && isSingle(keys)) continue;
    event.preventDefault();
    typed = [];
    found.run(event);
    return;
  }
}

/** @param {string} keys */
function isSingle(keys) {
  return keys.split(" ").every((key) => key.length === 1);
}

/** Whether the focus is nowhere in particular, so that a key of the screen takes nothing from a control. */
export function atRest() {
  const at = document.activeElement;
  return at === null || at === document.body || at.id === "main";
}

/** How a key is shown. @param {string} keys @returns {string[]} */
export function shown(keys) {
  /** @type {Record<string, string>} */
  const names = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", Mod: /Mac/.test(navigator.platform) ? "⌘" : "Ctrl", Shift: "⇧" };
  return keys.split(" ").map((key) => key.split(/\+(?=.)/).map((part) => names[part] ?? part).join(" "));
}

export function startKeys() {
  document.addEventListener("keydown", press);
}
