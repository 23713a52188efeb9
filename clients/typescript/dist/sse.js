// Server-sent events out of bytes, however these are cut.
import { NotUnderstood } from "./errors.js";
/** Twice what a run may hold, so that a snapshot in `values` mode fits. Longer ones are no host's of ours. */
export const MAX_EVENT_CHARS = 32 * 1024 * 1024;
/** Takes bytes as they come and gives the frames that are complete. Lines end in LF, CRLF or CR. */
export class FrameParser {
    /** How long the host wants to be left alone before a new connection, in ms, if it said so. */
    retryMs;
    #most;
    #decoder = new TextDecoder();
    #line = [];
    #lineSize = 0;
    #afterCr = false;
    #event = "";
    #data = [];
    #id = null;
    #size = 0;
    constructor(most = MAX_EVENT_CHARS) {
        this.#most = most;
    }
    push(bytes) {
        const frames = [];
        let text = this.#decoder.decode(bytes, { stream: true });
        if (this.#afterCr && text.length > 0) {
            if (text.startsWith("\n"))
                text = text.slice(1);
            this.#afterCr = false;
        }
        let start = 0;
        for (const end of text.matchAll(/\r\n|\n|\r/g)) {
            this.#hold(text.slice(start, end.index));
            start = end.index + end[0].length;
            this.#afterCr = end[0] === "\r" && start === text.length;
            this.#take(this.#line.join(""), frames);
            this.#line = [];
            this.#lineSize = 0;
        }
        this.#hold(text.slice(start));
        return frames;
    }
    #hold(more) {
        if (more === "")
            return;
        this.#lineSize += more.length;
        if (this.#size + this.#lineSize > this.#most)
            throw new NotUnderstood(`an event is longer than the ${this.#most} characters that are read`);
        this.#line.push(more);
    }
    #take(line, frames) {
        if (line === "") {
            if (this.#data.length > 0)
                frames.push({ event: this.#event || "message", data: this.#data.join("\n"), id: this.#id });
            this.#event = "";
            this.#data = [];
            this.#id = null;
            this.#size = 0;
            return;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "data") {
            this.#data.push(value);
            this.#size += line.length;
        }
        else if (name === "event") {
            this.#event = value;
        }
        else if (name === "id" && !value.includes("\0")) {
            this.#id = value;
        }
        else if (name === "retry" && /^\d+$/.test(value)) {
            this.retryMs = Number(value.slice(0, 9));
        }
    }
}
