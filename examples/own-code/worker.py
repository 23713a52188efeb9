"""Two tools for Baton. Run with: baton runner -- python worker.py

Needs the package mcp (pip install mcp). Nothing here knows Baton: it is an ordinary MCP server.
"""

import sys

from mcp.server import MCPServer

server = MCPServer("own-code")


@server.tool()
def word_count(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


@server.tool()
def shout(text: str) -> str:
    """Says a text louder."""
    return text.upper() + "!"


if __name__ == "__main__":
    print("the Python worker is up", file=sys.stderr)
    server.run(transport="stdio")
