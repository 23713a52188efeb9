// The five ways to look at a log, and the filter over them: which sequences are rows. Long logs are gone through in slices
// that leave the page time to draw.
import { parseQuery, valuesOf } from "../../lib/query.js";
import { countUntil } from "./facts.js";
import { factOf, nameOf, toneOf } from "./words.js";

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {"all" | "compact" | "decisions" | "effects" | "errors"} ViewId */

/** @type {{ id: ViewId, label: string, hint: string }[]} */
export const VIEWS = [
  { id: "all", label: "All", hint: "Every event" },
  { id: "compact", label: "Compact", hint: "A start and its end are one row" },
  { id: "decisions", label: "Decisions", hint: "What was decided, by whom, and what was asked" },
  { id: "effects", label: "Effects", hint: "Calls that leave the host, and what came of them" },
  { id: "errors", label: "Errors", hint: "What failed, was refused or reached a bound" },
];

const DECISIONS = /^(runOrchestrator\.|agent\.(decided|handoff)|core\.dispatch\.|core\.workflowChain\.confidence|interrupt\.|approval\.|baton\.approval|clarification\.|node\.resumed|run\.|budget\.(reserved|exhausted))/;
const ERRORS = /^(node\.retried|envelope\.(retry|truncated|refusal)|cap\.|budget\.(exhausted|threshold)|baton\.effect|replay\.|model\.capability)/;

/** As long as one slice of work may take. */
const SLICE = 8;

/** @param {string} text @returns {((event: RunEvent) => boolean) | null} null when everything passes */
export function filterOf(text) {
  const query = parseQuery(text);
  const words = query.words.map((word) => word.toLowerCase());
  const [types, nodes] = [valuesOf(query, "type"), valuesOf(query, "node")];
  if (words.length + types.length + nodes.length === 0) return null;
  return (event) => {
    if (types.length > 0 && !types.some((type) => event.type.startsWith(type) || nameOf(event).startsWith(type))) return false;
    if (nodes.length > 0 && !nodes.includes(event.nodeId ?? "")) return false;
    if (words.length === 0) return true;
    const told = `${event.type} ${nameOf(event)} ${event.nodeId ?? ""} ${factOf(event)}`.toLowerCase();
    return words.every((word) => told.includes(word));
  };
}

export class View {
  /** @param {import("./log.js").Log} log @param {ViewId} id @param {string} filter */
  constructor(log, id, filter) {
    this.log = log;
    this.id = id;
    /** @private */
    this.passes = filterOf(filter);
    /** @private @type {number[]} rows, unless they are simply all there are */
    this.kept = [];
    /** @private how much of the source was looked at */
    this.seen = 0;
  }

  /** Whether every row of the source is a row. @private */
  get plain() {
    return this.passes === null && this.id !== "decisions" && this.id !== "errors";
  }

  /** @private */
  get sourceLength() {
    const { facts, events } = this.log;
    return this.id === "compact" ? facts.pairs.heads.length : this.id === "effects" ? facts.calls.list.length : events.length;
  }

  /** @private @param {number} index @returns {number} */
  source(index) {
    const { facts } = this.log;
    return (this.id === "compact" ? facts.pairs.heads[index] : this.id === "effects" ? facts.calls.list[index]?.seq : index) ?? -1;
  }

  get count() {
    return this.plain ? this.sourceLength : this.kept.length;
  }

  /** The sequence of a row. @param {number} index */
  at(index) {
    return this.plain ? this.source(index) : this.kept[index] ?? -1;
  }

  /** The last row that is not after a sequence, −1 when there is none. @param {number} seq */
  indexOf(seq) {
    if (this.plain && this.id === "all") return Math.min(seq, this.count - 1);
    const list = this.plain ? (this.id === "compact" ? this.log.facts.pairs.heads : this.log.facts.calls.list.map((call) => call.seq)) : this.kept;
    return countUntil(list, seq, (one) => one) - 1;
  }

  /** Looks at more of the log, for a slice of time. @returns {boolean} whether some is left */
  extend() {
    if (this.plain) return false;
    const until = performance.now() + SLICE;
    const length = this.sourceLength;
    while (this.seen < length) {
      const seq = this.source(this.seen);
      this.seen += 1;
      const event = this.log.at(seq);
      if (event && this.fits(event)) this.kept.push(seq);
      if ((this.seen & 255) === 0 && performance.now() > until) break;
    }
    return this.seen < length;
  }

  /** @private @param {RunEvent} event */
  fits(event) {
    if (this.id === "decisions" && !DECISIONS.test(event.type)) return false;
    if (this.id === "errors" && toneOf(event) !== "bad" && !ERRORS.test(event.type)) return false;
    return this.passes === null || this.passes(event);
  }
}
