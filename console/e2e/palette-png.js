// Makes a PNG smaller by giving it a palette of at most 256 colours. Pictures of an interface have few colours and many
// shades between them at the edges of letters, which nobody misses.
import { deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const TABLE = Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

/** @param {Buffer} bytes */
function checksum(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = TABLE[(value ^ byte) & 0xff] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

/** @param {string} name @param {Buffer} data */
function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(checksum(body));
  return Buffer.concat([length, body, sum]);
}

/** The pixels of an eight-bit PNG without interlacing, as the browser writes them. @param {Buffer} png */
function decode(png) {
  const parts = [];
  let head = Buffer.alloc(0);
  for (let at = 8; at < png.length;) {
    const size = png.readUInt32BE(at);
    const name = png.toString("latin1", at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + size);
    if (name === "IHDR") head = data;
    if (name === "IDAT") parts.push(data);
    at += size + 12;
  }
  const [width, height, depth, kind] = [head.readUInt32BE(0), head.readUInt32BE(4), head[8], head[9]];
  if (depth !== 8 || ![2, 6].includes(kind)) throw new Error(`a PNG of depth ${depth} and kind ${kind} is not what browsers write`);
  const step = kind === 6 ? 4 : 3;
  const stride = width * step;
  const raw = inflateSync(Buffer.concat(parts));
  const pixels = Buffer.alloc(height * stride);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const left = x >= step ? pixels[y * stride + x - step] : 0;
      const up = y > 0 ? pixels[(y - 1) * stride + x] : 0;
      const corner = x >= step && y > 0 ? pixels[(y - 1) * stride + x - step] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      pixels[y * stride + x] = raw[y * (stride + 1) + 1 + x] + guess;
    }
  }
  return { width, height, step, pixels };
}

/** @param {number} left @param {number} up @param {number} corner */
function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** @param {Buffer} png @returns {Buffer} */
export function withPalette(png) {
  const { width, height, step, pixels } = decode(png);
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += step) {
    const colour = (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  // The most frequent ones, but none that is nearly another: shades between them are taken by their neighbours.
  const palette = [];
  const distance = (a, b) => ((a >> 16) - (b >> 16)) ** 2 + (((a >> 8) & 255) - ((b >> 8) & 255)) ** 2 + ((a & 255) - (b & 255)) ** 2;
  for (const [colour, count] of [...counts].sort((a, b) => b[1] - a[1])) {
    if (palette.length === 256) break;
    if (count > 2000 || !palette.some((one) => distance(one, colour) < 120)) palette.push(colour);
  }
  const nearest = new Map();
  for (const colour of counts.keys()) nearest.set(colour, palette.reduce((best, one, index) => (distance(one, colour) < distance(palette[best], colour) ? index : best), 0));
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = (y * width + x) * step;
      rows[y * (width + 1) + 1 + x] = nearest.get((pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2]);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", colours), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
