// The parser of streams, with what networks and hosts may send.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NotUnderstood } from "../dist/errors.js";
import { FrameParser } from "../dist/sse.js";

const STREAM = new TextEncoder().encode(
  '\ufeffid: 1\nevent: a\ndata: {"x":\n data: no\ndata:  two\n\n' +
    ": a comment\r\n\r\nid: 2\r\ndata: ü and 😀\r\n\r\nevent: nothing\n\n" +
    "retry: 1500\nretry: soon\ndata\n\ndata: beside\rdata: it\r\rid: 3\ndata: unfinished",
);
const FRAMES = [
  { event: "a", data: '{"x":\n two', id: "1" },
  { event: "message", data: "ü and 😀", id: "2" },
  { event: "message", data: "", id: null },
  { event: "message", data: "beside\nit", id: null },
];

test("frames are the same however the bytes are cut", () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const parser = new FrameParser();
    const frames = [];
    for (let at = 0; at < STREAM.length; at += size) frames.push(...parser.push(STREAM.subarray(at, at + size)));
    assert.deepEqual(frames, FRAMES, `pieces of ${size}`);
    assert.equal(parser.retryMs, 1500);
  }
});

test("an id counts for its frame only", () => {
  const frames = new FrameParser().push(new TextEncoder().encode("id: 7\ndata: a\n\ndata: b\n\nid: 1\x002\ndata: c\n\n"));
  assert.deepEqual(frames.map((frame) => frame.id), ["7", null, null]);
});

test("what never ends is not kept", () => {
  for (const text of ["xxxxxxxxxx", "data: 1\n".repeat(10), ":cccccccccc"]) {
    const parser = new FrameParser(1000);
    const forever = () => {
      for (let count = 0; count < 1000; count += 1) parser.push(new TextEncoder().encode(text));
    };
    assert.throws(forever, NotUnderstood, text);
  }
});

test("a large event in small pieces takes no longer than it must", () => {
  const parser = new FrameParser();
  const data = new TextEncoder().encode(`data: ${"x".repeat(2_000_000)}\n\n`);
  const frames = [];
  for (let at = 0; at < data.length; at += 100) frames.push(...parser.push(data.subarray(at, at + 100)));
  assert.equal(frames[0].data.length, 2_000_000);
});
