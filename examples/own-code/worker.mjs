// Two tools for Baton. Run with: baton runner -- node worker.mjs
//
// Needs the packages @modelcontextprotocol/server and zod. Nothing here knows Baton: it is an ordinary MCP server.

import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const server = new McpServer({ name: "own-code", version: "1.0.0" });

server.registerTool(
  "word_count",
  { description: "Counts the words of a text.", inputSchema: z.object({ text: z.string() }) },
  async ({ text }) => {
    const words = text.split(/\s+/).filter(Boolean).length;
    return { content: [{ type: "text", text: String(words) }], structuredContent: { result: words } };
  },
);

server.registerTool(
  "shout",
  { description: "Says a text louder.", inputSchema: z.object({ text: z.string() }) },
  async ({ text }) => ({ content: [{ type: "text", text: `${text.toUpperCase()}!` }] }),
);

console.error("the Node worker is up");
await server.connect(new StdioServerTransport());
