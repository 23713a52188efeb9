"""The tools of this project: plain Python functions, served over MCP on standard input and output.

Baton starts this program, calls the functions and records every call. Messages belong on standard error: `print(...,
file=sys.stderr)`; standard output is the connection.
"""

from typing import TypedDict

from mcp.server import MCPServer

worker = MCPServer("{{name}}")


class Score(TypedDict):
    urgent: bool
    words: int


@worker.tool()
def score(text: str) -> Score:
    """Says how urgent a ticket is."""
    alarming = ("fire", "down", "urgent", "smoke")
    return {"urgent": any(word in text.lower() for word in alarming), "words": len(text.split())}


if __name__ == "__main__":
    worker.run()
