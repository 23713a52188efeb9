// The page names what it needs at once, so that the browser asks for it at once instead of file by file.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

function closure(file, seen = new Set()) {
  if (seen.has(file)) return seen;
  seen.add(file);
  const text = readFileSync(join(root, file), "utf8");
  for (const [, path] of text.matchAll(/^(?:import|export)\s[^;]*?from\s+"(\.[^"]+)"/gm)) closure(normalize(join(dirname(file), path)), seen);
  return seen;
}

test("every module of the frame is preloaded, and nothing else", () => {
  const page = readFileSync(join(root, "index.html"), "utf8");
  const named = [...page.matchAll(/modulepreload" href="\/console\/@\/([^"]+)"/g)].map(([, file]) => file);
  const needed = [...closure("main.js")].filter((file) => file !== "main.js").sort();
  assert.deepEqual(named.sort(), needed);
});
