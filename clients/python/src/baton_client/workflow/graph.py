"""A workflow as it is built: its nodes, edges and variables, and the line of the program behind each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from .problems import BuildError, Site, caller
from .values import Output, Value, Variable, nodes_named, sources

T = TypeVar("T")

KINDS: dict[type, str] = {str: "string", int: "number", float: "number", bool: "boolean", dict: "object", list: "array"}
COLUMN, ROW = 220, 120
"""Distances between nodes in a drawing."""

EXPRESSIONS = ("expression", "condition", "while", "items", "when", "assign")
"""Members of a configuration that hold CEL."""
_ID = re.compile(r"^[a-z][a-z0-9_-]{0,127}$")


@dataclass(frozen=True)
class Place:
    """Where the next step goes: behind this node, through this port."""

    node: str
    column: int
    port: str | None = None
    rule: str | None = None


@dataclass(frozen=True)
class Reference:
    """A step that is named before it need exist."""

    node: str
    site: Site


class Graph:
    """Nodes, edges and variables in the order in which they were made: the same program gives the same bytes."""

    def __init__(self, workflow_id: str, site: Site) -> None:
        if not _ID.match(workflow_id):
            raise BuildError(
                f"{workflow_id!r} cannot be the id of a workflow: a lowercase letter, then a-z 0-9 _ -", site
            )
        self.id = workflow_id
        self.site = site
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self.variables: list[dict[str, Any]] = []
        self.channels: dict[str, Any] = {}
        self.sites: dict[str, list[tuple[str, Site]]] = {"nodes": [], "edges": [], "variables": []}
        self.references: list[Reference] = []
        self._ids: dict[str, int] = {}
        self._edge_ids: set[str] = set()
        self._rows: dict[int, int] = {}

    def add_node(
        self,
        node_id: str,
        type_id: str,
        config: dict[str, Any],
        after: list[Place],
        *,
        inputs: Mapping[str, Value] | None = None,
        name: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Place:
        site = caller()
        if not isinstance(node_id, str) or not node_id:
            raise BuildError("a step needs an id", site)
        if node_id in self._ids:
            part, first = self.sites["nodes"][self._ids[node_id]]
            raise BuildError(f"there is a {part} already, from {first}", site)
        for value in (inputs or {}).values():
            self._own(value, site)
        column = max((place.column + 1 for place in after), default=0)
        row = self._rows.get(column, 0)
        self._rows[column] = row + 1
        made = {
            "id": node_id,
            "typeId": type_id,
            "name": name or node_id.replace("-", " ").replace("_", " ").capitalize(),
            "position": {"x": column * COLUMN, "y": row * ROW},
            "config": config,
            "inputs": sources(inputs or {}),
            **(more or {}),
        }
        self._ids[node_id] = len(self.nodes)
        self.nodes.append(made)
        self.sites["nodes"].append((f'step "{node_id}"', site))
        self._refer([config, made["inputs"]], site)
        for place in after:
            self.add_edge(place, node_id)
        return Place(node_id, column)

    def add_edge(self, place: Place, target: str) -> None:
        ends = [place.node, target]
        ends += ([place.port] if place.port else []) + (["failed"] if place.rule == "any_failed" else [])
        name, number = "-".join(ends), 1
        # "a-b" to "c" and "a" to "b-c" read the same.
        while name in self._edge_ids:
            number += 1
            name = "-".join([*ends, str(number)])
        self._edge_ids.add(name)
        edge: dict[str, Any] = {"id": name, "sourceNodeId": place.node, "targetNodeId": target}
        if place.port:
            edge["sourceOutput"] = place.port
        if place.rule:
            edge["triggerRule"] = place.rule
        self.edges.append(edge)
        self.sites["edges"].append((f'the way from "{place.node}" to "{target}"', caller()))

    def add_variable(self, name: str, kind: type[T], more: dict[str, Any]) -> Variable[T]:
        site = caller()
        if any(kept["name"] == name for kept in self.variables) or name in self.channels:
            raise BuildError(f'there is a variable "{name}" already', site)
        if kind not in KINDS:
            raise BuildError(f"{kind!r} is no type of a variable: use str, int, float, bool, dict or list", site)
        self.variables.append({"name": name, "type": KINDS[kind], **more})
        self.sites["variables"].append((f'variable "{name}"', site))
        return Variable(name, self)

    def check_references(self) -> None:
        for reference in self.references:
            if reference.node not in self._ids:
                raise BuildError(f'there is no step "{reference.node}"', reference.site)

    def part_at(self, pointer: str) -> tuple[str, Site]:
        """What was built there, and by which line."""
        words = pointer.split("/")[1:]
        if len(words) >= 2 and words[0] in self.sites and words[1].isdigit():
            of_kind = self.sites[words[0]]
            if int(words[1]) < len(of_kind):
                return of_kind[int(words[1])]
        return "the workflow", self.site

    def _own(self, value: Value, site: Site) -> None:
        if isinstance(value, Variable) and value.owner is not self:
            raise BuildError(f'the variable "{value.name}" is one of another workflow', site)
        if isinstance(value, Output):
            self.references.append(Reference(value.node, site))

    def _refer(self, value: Any, site: Site, is_expression: bool = False) -> None:
        """Notes the steps that the expressions of a configuration name."""
        if isinstance(value, str) and is_expression:
            self.references.extend(Reference(node, site) for node in nodes_named(value))
        elif isinstance(value, dict):
            for name, one in value.items():
                # `assign` holds an expression under each name.
                self._refer(one, site, is_expression or name in EXPRESSIONS or name.endswith("Expression"))
        elif isinstance(value, list):
            for one in value:
                self._refer(one, site)


def document(graph: Graph, head: Mapping[str, Any], tail: Mapping[str, Any]) -> dict[str, Any]:
    """The definition, with its members in a fixed order."""
    if not graph.nodes:
        raise BuildError(f'the workflow "{graph.id}" has no step', graph.site)
    graph.check_references()
    whole = {
        **head,
        "nodes": graph.nodes,
        "edges": graph.edges,
        "triggers": [{"id": "manual", "type": "manual"}],
        "variables": graph.variables,
        **({"channels": graph.channels} if graph.channels else {}),
        **tail,
    }
    copy: dict[str, Any] = json.loads(json.dumps(whole))
    return copy
