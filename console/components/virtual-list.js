// A list of any length: only the rows in sight exist. Rows have one height, so that scrolling needs no measuring.
// A grid for assistive technology: the list has the focus and names its active row.
import { uid } from "../lib/dom.js";
import { atRest } from "../lib/keys.js";
import { arrange, become } from "../lib/rows.js";

/**
 * @typedef {object} ListOptions
 * @property {string} label
 * @property {number} rowHeight in CSS pixels
 * @property {(index: number) => HTMLElement} render a row; the list places it, or makes the one that is there look like it
 * @property {(index: number) => string} [key] what a row is about, if not its place: its element goes with it
 * @property {HTMLElement} [header] stays at the top
 * @property {(index: number, event: Event) => void} [onOpen] Enter, or a double click
 * @property {(index: number) => void} [onActive]
 * @property {(index: number, event: KeyboardEvent) => void} [onSelect] Space
 * @property {(first: number, last: number) => void} [onRange] what is in sight, after every change
 */

const SPARE = 8;
/** Browsers have a tallest element (Firefox: 17.8 million pixels). Beyond it, scrolling is scaled. */
const TALLEST = 12_000_000;

export class BtVirtualList extends HTMLElement {
  /** @type {ListOptions} */
  options = { label: "", rowHeight: 32, render: () => document.createElement("div") };
  /** @private */
  total = 0;
  /** @private */
  current = -1;
  /** @private @type {Map<number, { row: HTMLElement, key: string, old: boolean }>} */
  rows = new Map();
  /** @private */
  planned = 0;
  /** @private */
  space = document.createElement("div");
  /** @private */
  rowPrefix = uid("row");

  /** @param {ListOptions} options */
  configure(options) {
    this.options = options;
    this.setAttribute("aria-label", options.label);
    if (options.header) this.prepend(options.header);
    this.refresh();
  }

  connectedCallback() {
    if (!this.space.isConnected) {
      this.space.className = "vl-space";
      this.space.setAttribute("role", "rowgroup");
      this.append(this.space);
      this.setAttribute("role", "grid");
      this.tabIndex = 0;
      this.addEventListener("scroll", () => this.plan(), { passive: true });
      this.addEventListener("keydown", (event) => this.press(event));
      this.addEventListener("click", (event) => this.clicked(event));
      this.addEventListener("dblclick", (event) => this.current >= 0 && this.options.onOpen?.(this.current, event));
    }
    this.sizes = new ResizeObserver(() => this.plan());
    this.sizes.observe(this);
  }

  disconnectedCallback() {
    this.sizes?.disconnect();
    cancelAnimationFrame(this.planned);
    this.planned = 0;
  }

  /** How many rows there are. */
  get count() {
    return this.total;
  }

  set count(count) {
    this.total = count;
    this.setAttribute("aria-rowcount", String(count + (this.options.header ? 1 : 0)));
    if (this.current >= count) this.current = count - 1;
    this.plan();
  }

  get active() {
    return this.current;
  }

  set active(index) {
    this.activate(index, false);
  }

  /** @param {number} index @param {boolean} [reveal] */
  activate(index, reveal = true) {
    const next = Math.max(-1, Math.min(index, this.total - 1));
    if (reveal && next >= 0) this.reveal(next);
    if (next === this.current) return;
    this.current = next;
    this.mark();
    this.options.onActive?.(next);
  }

  /** Goes some rows on, or begins with the first one in sight. @param {number} by */
  move(by) {
    const first = Math.ceil(this.scrollTop / this.scale() / this.options.rowHeight);
    this.activate(Math.max(0, this.current < 0 ? first : this.current + by));
  }

  /** Draws what is in sight anew; with an index only that row. @param {number} [index] */
  refresh(index) {
    for (const [place, shown] of this.rows) if (index === undefined || index === place) shown.old = true;
    this.plan();
  }

  /** Scrolls a row into sight. @param {number} index */
  reveal(index) {
    const { rowHeight } = this.options;
    // Rows that were added since the last drawing have no room to scroll to yet.
    this.space.style.setProperty("height", `${this.total * rowHeight * this.scale()}px`);
    const head = this.options.header?.offsetHeight ?? 0;
    const top = index * rowHeight * this.scale();
    const view = this.clientHeight - head;
    if (top < this.scrollTop) this.scrollTo({ top });
    else if (top + rowHeight > this.scrollTop + view) this.scrollTo({ top: top + rowHeight - view });
    this.draw();
  }

  /** @private */
  scale() {
    return Math.min(1, TALLEST / Math.max(1, this.total * this.options.rowHeight));
  }

  /** @private */
  plan() {
    if (this.planned || !this.isConnected) return;
    this.planned = requestAnimationFrame(() => {
      this.planned = 0;
      this.draw();
    });
  }

  /** @private */
  draw() {
    const { rowHeight, render, onRange } = this.options;
    const scale = this.scale();
    this.space.style.setProperty("height", `${this.total * rowHeight * scale}px`);
    const top = this.scrollTop / scale;
    const shift = this.scrollTop - top; // Rows stay next to each other although the scale is not 1.
    const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
    const last = Math.min(this.total - 1, Math.ceil((top + this.clientHeight) / rowHeight) + SPARE);
    const had = this.rows;
    /** Elements that may show something else now, by what they showed. @type {Map<string, HTMLElement>} */
    const free = new Map();
    for (const [index, { key, row, old }] of had) if (old || index < first || index > last) free.set(key, row);
    this.rows = new Map();
    for (let index = first; index <= last; index += 1) {
      let shown = had.get(index);
      if (!shown || shown.old) {
        const key = this.options.key?.(index) ?? String(index);
        const made = render(index);
        made.classList.add("vl-row");
        made.setAttribute("role", "row");
        made.id = `${this.rowPrefix}-${index}`;
        made.setAttribute("aria-rowindex", String(index + (this.options.header ? 2 : 1)));
        made.style.setProperty("height", `${rowHeight}px`);
        this.markRow(made, index);
        const row = free.get(key);
        if (row && free.delete(key)) become(row, made);
        shown = { row: row ?? made, key, old: false };
      }
      shown.row.style.setProperty("transform", `translateY(${index * rowHeight + shift}px)`);
      this.rows.set(index, shown);
    }
    // In the order in which they are read.
    arrange(this.space, Array.from(this.rows.values(), ({ row }) => row));
    this.mark();
    onRange?.(Math.max(0, Math.floor(top / rowHeight)), Math.min(this.total - 1, Math.ceil((top + this.clientHeight) / rowHeight)));
  }

  /** @private */
  mark() {
    for (const [index, { row }] of this.rows) this.markRow(row, index);
    if (this.rows.has(this.current)) this.setAttribute("aria-activedescendant", `${this.rowPrefix}-${this.current}`);
    else this.removeAttribute("aria-activedescendant");
  }

  /** @private @param {HTMLElement} row @param {number} index */
  markRow(row, index) {
    row.classList.toggle("active", index === this.current);
    if (row.hasAttribute("aria-selected") === false && index === this.current) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }

  /** @private @param {Event} event @returns {number} */
  indexOf(event) {
    const row = event.target instanceof Element ? event.target.closest(".vl-row") : null;
    return row ? Number(row.id.slice(this.rowPrefix.length + 1)) : -1;
  }

  /** @private @param {MouseEvent} event */
  clicked(event) {
    const index = this.indexOf(event);
    if (index >= 0) this.activate(index, false);
  }

  /** @private @param {KeyboardEvent} event */
  press(event) {
    if (event.target !== this || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.clientHeight / this.options.rowHeight) - 2);
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const by = moves[event.key];
    if (by !== undefined) this.move(by);
    else if (event.key === "Home") this.activate(0);
    else if (event.key === "End") this.activate(this.total - 1);
    else if (event.key === "Enter" && this.current >= 0) this.options.onOpen?.(this.current, event);
    else if (event.key === " " && this.current >= 0) this.options.onSelect?.(this.current, event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
customElements.define("bt-virtual-list", BtVirtualList);

/** @param {ListOptions} options */
export function virtualList(options) {
  const list = /** @type {BtVirtualList} */ (document.createElement("bt-virtual-list"));
  list.configure(options);
  return list;
}

/** `j`, `k` and `Enter` without the focus in the list. @param {BtVirtualList} list @returns {import("../lib/keys.js").Command[]} */
export function listCommands(list) {
  const group = "List";
  return [
    { keys: "j", label: "Next row", group, run: () => list.move(1) },
    { keys: "k", label: "Previous row", group, run: () => list.move(-1) },
    { keys: "Enter", label: "Open the row", group, when: () => list.active >= 0 && atRest(), run: (event) => list.options.onOpen?.(list.active, event ?? new Event("open")) },
  ];
}
