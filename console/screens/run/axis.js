// Where a moment lies between 0 and 1. Time is drawn to scale, except for long pauses: a night of waiting would leave no
// room for the seconds in which something happened, so such a stretch gets a fixed width and is marked as cut.

/** @typedef {{ from: number, to: number, left: number, right: number }} Piece */

/** A pause is cut when it is longer than this part of what is left. */
const PART = 0.2;
const MOST_CUTS = 6;
const CUT_WIDTH = 0.075;
/** What still goes on needs room to be seen after the newest event. */
const TAIL = 0.06;
/** And what happened last must not lie on the edge. */
const EDGE = 0.01;

export class Axis {
  /**
   * @param {number[]} times of all events, in order
   * @param {{ from: number, to: number }[]} gaps the longest pauses, longest first
   * @param {"time" | "steps"} kind
   * @param {boolean} over whether nothing goes on after the newest event
   */
  constructor(times, gaps, kind, over) {
    this.times = times;
    /** Where the newest event lies. */
    this.room = 1 - (over ? EDGE : TAIL);
    this.start = times[0] ?? 0;
    this.end = times[times.length - 1] ?? 0;
    /** Everything happened at once: then there is only the order. */
    this.kind = this.end - this.start < 0.001 ? "steps" : kind;
    /** @type {Piece[]} */
    this.pieces = [];
    /** @type {Piece[]} */
    this.cuts = [];
    if (this.kind === "time") this.lay(gaps);
  }

  /** @private @param {{ from: number, to: number }[]} gaps */
  lay(gaps) {
    let left = this.end - this.start;
    const cut = [];
    for (const gap of gaps) {
      const size = gap.to - gap.from;
      if (cut.length >= MOST_CUTS || size < left * PART) break;
      cut.push(gap);
      left -= size;
    }
    cut.sort((a, b) => a.from - b.from);
    const room = this.room - cut.length * CUT_WIDTH;
    const scale = left > 0 ? room / left : 0;
    let [at, x] = [this.start, 0];
    const put = (/** @type {number} */ to, /** @type {number} */ width) => {
      const piece = { from: at, to, left: x, right: x + width };
      this.pieces.push(piece);
      [at, x] = [to, x + width];
      return piece;
    };
    for (const gap of cut) {
      put(gap.from, (gap.from - at) * scale);
      this.cuts.push(put(gap.to, CUT_WIDTH));
    }
    put(this.end, Math.max(0, this.room - x));
  }

  /** @param {number} ms @param {number} seq @returns {number} */
  x(ms, seq) {
    if (this.kind === "steps") return this.times.length > 1 ? Math.min(1, seq / (this.times.length - 1)) * this.room : 0;
    if (ms >= this.end) return this.room;
    const piece = this.pieces.find((one) => ms <= one.to);
    if (!piece) return this.room;
    const length = piece.to - piece.from;
    return piece.left + (length > 0 ? ((ms - piece.from) / length) * (piece.right - piece.left) : 0);
  }

  /** Where an event lies. @param {number} seq */
  of(seq) {
    return this.x(this.times[seq] ?? this.end, seq);
  }

  /** The last event at or before a place. @param {number} x @returns {number} */
  seq(x) {
    const last = this.times.length - 1;
    if (x >= this.room || last < 1) return Math.max(0, last);
    if (this.kind === "steps") return Math.max(0, Math.round((x / this.room) * last));
    let [low, high] = [0, last];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.of(middle) <= x) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The moment at a place, as milliseconds since the start. @param {number} x */
  since(x) {
    if (x >= this.room) return this.end - this.start;
    const piece = this.pieces.find((one) => x <= one.right) ?? this.pieces[this.pieces.length - 1];
    if (!piece) return 0;
    const width = piece.right - piece.left;
    return piece.from - this.start + (width > 0 ? ((x - piece.left) / width) * (piece.to - piece.from) : 0);
  }
}
