// A way to the host that misbehaves as it is told, one connection after the other.
import { connect, createServer } from "node:net";

export const PASS = { kind: "pass" };
/** The host gets the request and answers; the caller gets nothing. */
export const SWALLOW = { kind: "swallow" };
/** Nothing happens until the caller gives up. */
export const STALL = { kind: "stall" };
/** So many bytes of the reply arrive, then the connection breaks. */
export const cut = (after) => ({ kind: "cut", after });
/** So many bytes of the reply arrive, then nothing until the caller gives up. */
export const hold = (after) => ({ kind: "hold", after });
/** The proxy answers by itself. */
export const say = (status, headers = {}, body = "") => ({ kind: "say", status, headers, body });

/** Does what `plan` says for the next connections, and passes on those after. */
export class Proxy {
  static async start(upstream, ...plan) {
    const proxy = new Proxy();
    proxy.plan = plan;
    proxy.requests = [];
    proxy.upstream = new URL(upstream);
    proxy.sockets = new Set();
    /** Connections to the host: one for each request under way. */
    proxy.underWay = new Set();
    proxy.server = createServer((caller) => proxy.#accept(caller));
    await new Promise((done) => proxy.server.listen(0, "127.0.0.1", done));
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  stop() {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }

  #keep(socket) {
    this.sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.sockets.delete(socket));
  }

  #accept(caller) {
    this.#keep(caller);
    let data = Buffer.alloc(0);
    const read = (chunk) => {
      data = Buffer.concat([data, chunk]);
      const request = wholeRequest(data);
      if (request === undefined) return;
      caller.off("data", read);
      this.requests.push(request.toString());
      this.#serve(caller, request, this.plan.shift() ?? PASS);
    };
    caller.on("data", read);
  }

  #serve(caller, request, plan) {
    if (plan.kind === "stall") return;
    if (plan.kind === "say") {
      const lines = Object.entries({ ...plan.headers, "content-length": plan.body.length, connection: "close" }).map(([name, value]) => `${name}: ${value}`);
      caller.end([`HTTP/1.1 ${plan.status}`, ...lines, "", plan.body].join("\r\n"));
      return;
    }
    let left = plan.after ?? (plan.kind === "swallow" ? 0 : Number.POSITIVE_INFINITY);
    const host = connect(Number(this.upstream.port), this.upstream.hostname, () => host.write(request));
    this.#keep(host);
    this.underWay.add(host);
    host.on("close", () => this.underWay.delete(host));
    host.on("data", (chunk) => {
      const before = left;
      left -= chunk.length;
      if (before > 0) caller.write(chunk.subarray(0, before), () => plan.kind === "cut" && left <= 0 && caller.resetAndDestroy());
      if (plan.kind !== "swallow" && left <= 0) host.destroy();
    });
    host.on("end", () => plan.kind !== "hold" && caller.end());
    caller.on("close", () => host.destroy());
  }
}

/** One whole request, with `Connection: close`, so that each has a connection of its own; undefined if more must come. */
function wholeRequest(data) {
  const end = data.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const lines = data.subarray(0, end).toString("latin1").split("\r\n").filter((line) => !/^connection:/i.test(line));
  const length = Number(lines.find((line) => /^content-length:/i.test(line))?.split(":")[1] ?? 0);
  if (data.length < end + 4 + length) return undefined;
  return Buffer.concat([Buffer.from(`${[...lines, "connection: close"].join("\r\n")}\r\n\r\n`, "latin1"), data.subarray(end + 4)]);
}
