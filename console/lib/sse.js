// Server-sent events out of a stream of bytes. EventSource cannot send the key, so the frames are read here.

/** @typedef {{ id: string | null, event: string, data: string }} Frame */

/** Takes text as it comes and gives the frames that are complete. */
export class FrameReader {
  constructor() {
    this.rest = "";
    this.event = "";
    /** @type {string | null} */
    this.id = null;
    /** @type {string[]} */
    this.data = [];
  }

  /** @param {string} text @returns {Frame[]} */
  push(text) {
    const all = this.rest + text;
    // A carriage return at the very end may be half of a line break.
    const cut = Math.max(all.lastIndexOf("\n"), all.lastIndexOf("\r", all.length - 2)) + 1;
    this.rest = all.slice(cut);
    /** @type {Frame[]} */
    const frames = [];
    for (const line of all.slice(0, cut).split(/\r\n|\r|\n/).slice(0, -1)) {
      const frame = this.line(line);
      if (frame) frames.push(frame);
    }
    return frames;
  }

  /** @private @param {string} line @returns {Frame | null} */
  line(line) {
    if (line === "") return this.dispatch();
    if (line.startsWith(":")) return null;
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.data.push(value);
    else if (name === "event") this.event = value;
    else if (name === "id" && !value.includes("\0")) this.id = value;
    return null;
  }

  /** @private @returns {Frame | null} */
  dispatch() {
    const frame = { id: this.id, event: this.event || "message", data: this.data.join("\n") };
    const said = this.data.length > 0;
    this.event = "";
    this.id = null;
    this.data = [];
    return said ? frame : null;
  }
}
