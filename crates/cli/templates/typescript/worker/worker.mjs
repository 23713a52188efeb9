// The tools of this project, served over MCP on standard input and output.
//
// Baton starts this program, calls the tools and records every call. Messages belong on standard error
// (`console.error`); standard output is the connection.

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const alarming = ['fire', 'down', 'urgent', 'smoke'];

serveStdio(() => {
  const worker = new McpServer({ name: '{{name}}', version: '1.0.0' });
  worker.registerTool(
    'score',
    {
      description: 'Says how urgent a ticket is.',
      inputSchema: z.object({ text: z.string() }),
      outputSchema: z.object({ urgent: z.boolean(), words: z.number() }),
    },
    async ({ text }) => {
      const score = {
        urgent: alarming.some((word) => text.toLowerCase().includes(word)),
        words: text.split(/\s+/).filter(Boolean).length,
      };
      return { content: [{ type: 'text', text: JSON.stringify(score) }], structuredContent: score };
    },
  );
  return worker;
});
