// The frame: top bar, banner, the screen of the moment, toasts. It mounts and unmounts screens and knows none of them.
import { darkIcon, lightIcon, systemIcon } from "./components/icons.js";
import { closeDialogs } from "./components/dialog.js";
import { openHelp, openPalette } from "./components/palette.js";
import { empty, failed, loading } from "./components/states.js";
import { openInterrupts } from "./lib/activity.js";
import { lost, probe, reach, recovered } from "./lib/connection.js";
import { copy } from "./lib/copy.js";
import { h, svg } from "./lib/dom.js";
import { unreachable } from "./lib/error.js";
import { addCommands } from "./lib/keys.js";
import { address, link, navigate, place, query, setQuery } from "./lib/router.js";
import { key, signOut } from "./lib/session.js";
import { effect, scope, signal, untracked } from "./lib/signal.js";
import { nextTheme, theme } from "./lib/theme.js";
import { toast, toastArea } from "./lib/toast.js";
import { routes, sections } from "./routes.js";
import { signInForm } from "./screens/sign-in.js";

const title = signal("");

export function mark() {
  return svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" },
    svg("path", { d: "M4.6 11.4 13 3", stroke: "currentColor", "stroke-width": 2.6, "stroke-linecap": "round" }),
    svg("circle", { cx: 3.6, cy: 12.4, r: 2.2, fill: "none", stroke: "currentColor", "stroke-width": 1.6 }));
}

/** @param {HTMLElement} root */
export function mountShell(root) {
  const main = h("main", { tabindex: "-1", id: "main" });
  root.append(
    link("#main", { class: "skip", onClick: (/** @type {Event} */ event) => (event.preventDefault(), main.focus()) }, "Skip to content"),
    h("header", { class: "topbar" },
      link(address("/runs"), { class: "brand", "aria-label": "Baton: runs" }, mark(), "Baton"),
      navigation(), tools()),
    h("div", { role: "status" }, () => reach.value === "offline" && h("div", { class: "banner" },
      "The host does not answer. What you see may be old; the console keeps asking.",
      h("button", { type: "button", class: "small", onClick: probe }, "Ask now"))),
    main, toastArea());
  effect(() => {
    document.title = title.value ? `${title.value} · Baton` : "Baton";
  });
  addCommands(globalCommands());
  showScreens(main);
}

function navigation() {
  const nav = h("nav", { "aria-label": "Main", hidden: () => key.value === null }, sections.map((section) =>
    link(address(section.path), { "aria-current": () => (place.value.route?.section === section.id ? "page" : null) },
      section.label,
      section.id === "inbox" && (() => {
        const open = openInterrupts.value ?? 0;
        return open > 0 && h("span", { class: "count", title: `${open} open` }, open > 99 ? "99+" : open, h("span", { class: "visually-hidden" }, " open"));
      }))));
  // Where there is no room for all of them, the one that is shown is in sight.
  effect(() => {
    void openInterrupts.value; // Its number takes room too.
    if (place.value.route && key.value !== null) requestAnimationFrame(() => nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }));
  });
  return nav;
}

function tools() {
  const icons = { system: systemIcon, light: lightIcon, dark: darkIcon };
  return h("div", { class: "tools" },
    h("button", { type: "button", class: "icon", title: "Commands ( . )", "aria-label": "Commands", onClick: openPalette }, h("kbd", null, ".")),
    h("button", { type: "button", class: "icon", title: "Keyboard ( ? )", "aria-label": "Keyboard", onClick: openHelp }, h("kbd", null, "?")),
    h("button", { type: "button", class: "icon", title: () => `Theme: ${theme.value}`, "aria-label": () => `Theme: ${theme.value}`, onClick: nextTheme }, () => icons[theme.value]()),
    () => key.value !== null && h("button", { type: "button", class: "quiet small", onClick: () => signOut() }, "Sign out"));
}

/** @returns {import("./lib/keys.js").Command[]} */
function globalCommands() {
  const signedIn = () => key.peek() !== null;
  return [
    ...sections.map((section) => ({ keys: section.keys, label: section.label, group: "Go to", when: signedIn, run: () => navigate(address(section.path)) })),
    { keys: ".", label: "Command palette", group: "Anywhere", run: openPalette },
    { keys: "Mod+k", label: "Command palette", group: "Anywhere", typing: true, hidden: true, run: openPalette },
    { keys: "?", label: "Keyboard help", group: "Anywhere", run: openHelp },
    { keys: "y", label: "Copy link to this view", group: "Anywhere", run: () => copy(location.href, "Link") },
    { label: "Change theme", group: "Anywhere", run: () => (nextTheme(), toast(`Theme: ${theme.peek()}`)) },
    { label: "Sign out", group: "Anywhere", when: signedIn, run: () => signOut() },
  ];
}

/** Shows the screen of the address, one at a time. @param {HTMLElement} main */
function showScreens(main) {
  let first = true;
  effect(() => {
    const { route, params, path } = place.value;
    const open = key.value !== null || route?.public;
    untracked(() => {
      if (path === "/") return navigate(address("/runs"), { replace: true });
      if (!open) {
        leave();
        title.value = "Sign in";
        return main.replaceChildren(signInForm());
      }
      if (!route) {
        leave();
        title.value = "Not found";
        return main.replaceChildren(empty("Nothing is here.", link(address("/runs"), null, "Go to runs")));
      }
      void show(main, route, params);
      // After the dialogs of the screen before are closed: until then nothing else can have the focus.
      if (!first) main.focus({ preventScroll: true });
      first = false;
    });
  });
}

/** The scope of the screen that is shown. */
let shown = { end() {} };

function leave() {
  // A question about one screen is not asked over another.
  closeDialogs();
  shown.end();
  shown = { end() {} };
}

/** How often a screen that could not be fetched is asked for again when the host is back. */
const TRIES = 3;
let preloaded = false;

/** Screens are there before they are wanted: a host that is away then does not keep anybody from going to one. */
function preload() {
  if (preloaded) return;
  preloaded = true;
  (globalThis.requestIdleCallback ?? setTimeout)(() => routes.forEach(({ load }) => load().catch(() => {}))); // When it is wanted it is told.
}

/**
 * @param {HTMLElement} main @param {import("./lib/router.js").Route} route @param {Record<string, string>} params
 * @param {number} [tries] how often it could not be fetched
 */
async function show(main, route, params, tries = 0) {
  leave();
  const here = scope();
  const left = new AbortController();
  const root = h("div", { class: "screen" });
  const waiting = setTimeout(() => main.replaceChildren(loading()), 120);
  // Whoever goes on before the screen is there must not find "loading" in the place of the next one.
  shown = { end: () => (clearTimeout(waiting), left.abort(), here.end()) };
  /** @type {import("./types.js").ScreenContext} */
  const context = {
    signal: left.signal,
    query,
    setQuery,
    later: (work) => (left.signal.aborted ? undefined : here.run(work)),
    commands: (added) => void here.run(() => addCommands(added)),
    setTitle: (text) => !left.signal.aborted && (title.value = text),
  };
  try {
    const module = await route.load().catch((error) => {
      if (!(error instanceof TypeError) || tries >= TRIES) throw error;
    });
    if (left.signal.aborted) return;
    if (!module) {
      clearTimeout(waiting);
      lost();
      main.replaceChildren(failed(unreachable(), probe));
      const before = recovered.peek();
      here.run(() => effect(() => {
        if (recovered.value !== before) untracked(() => void show(main, route, params, tries + 1));
      }));
      return;
    }
    const { default: screen } = module;
    clearTimeout(waiting);
    title.value = typeof screen.title === "function" ? screen.title(params) : screen.title;
    main.replaceChildren(root);
    here.run(() => {
      const unmount = screen.mount(root, params, context);
      if (unmount) left.signal.addEventListener("abort", unmount, { once: true });
    });
    preload();
  } catch (error) {
    clearTimeout(waiting);
    if (!left.signal.aborted) main.replaceChildren(failed(error, () => location.reload()));
    console.error(error);
  }
}
