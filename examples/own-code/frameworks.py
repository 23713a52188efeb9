"""An agent of PydanticAI and a graph of LangGraph, as tools. Models are the frameworks' own stand-ins: no network.

Needs the packages mcp, pydantic-ai-slim and langgraph. Run with: baton runner -- python frameworks.py
"""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from mcp.server import MCPServer
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel(custom_output_text="two cups, if it is cold"), instructions="You know about tea.")


class State(TypedDict):
    text: str
    words: int


def count(state: State) -> dict[str, int]:
    return {"words": len(state["text"].split())}


builder = StateGraph(State)
builder.add_node("count", count)
builder.add_edge(START, "count")
builder.add_edge("count", END)
graph = builder.compile()

server = MCPServer("frameworks")


@server.tool()
async def ask(question: str) -> str:
    """Asks the agent."""
    return (await agent.run(question)).output


@server.tool()
async def measure(text: str) -> int:
    """Goes through the graph."""
    return (await graph.ainvoke({"text": text, "words": 0}))["words"]


if __name__ == "__main__":
    server.run(transport="stdio")
