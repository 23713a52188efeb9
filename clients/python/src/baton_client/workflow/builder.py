"""Workflows as plain code: `Workflow("order").step(...).approve(...)` makes the JSON definition."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    overload,
)

from .chain import Chain
from .graph import Graph, Place, document
from .problems import BuildError, Site, caller
from .values import Variable

if TYPE_CHECKING:
    from ..client import AsyncClient, Client

T = TypeVar("T")
Reducer = Literal["replace", "append", "feedback", "message", "votes", "merge", "counter"]


class Workflow(Chain):
    """Each chain that begins at the workflow itself starts with the run; several of them run in parallel."""

    def __init__(
        self,
        id: str,
        *,
        name: str | None = None,
        version: str = "1.0.0",
        description: str | None = None,
        settings: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        configurable_schema: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(Graph(id, caller()), [], begins=True)
        self.id = id
        about = {} if description is None else {"description": description}
        self._head = {"id": id, "name": name or id, **about, "version": version}
        schema = {} if configurable_schema is None else {"configurableSchema": configurable_schema}
        self._tail = {"metadata": dict(metadata or {}), "settings": dict(settings or {}), **schema}

    def input(
        self, name: str, kind: type[T], *, description: str | None = None, sensitive: bool = False
    ) -> Variable[T]:
        """A variable that whoever starts a run must give."""
        return self._graph.add_variable(name, kind, {"required": True, **_about(description, sensitive)})

    def variable(
        self,
        name: str,
        kind: type[T],
        default: T | None = None,
        *,
        description: str | None = None,
        sensitive: bool = False,
    ) -> Variable[T]:
        """A variable that may be given, and that steps may set."""
        given = {} if default is None else {"defaultValue": default}
        return self._graph.add_variable(name, kind, {**given, **_about(description, sensitive)})

    def channel(
        self, name: str, reducer: Reducer = "replace", *, default: Any = None, max_size: int | None = None, **more: Any
    ) -> Variable[Any]:
        """A value that changes by a rule. It is read like a variable."""
        if name in self._graph.channels or any(kept["name"] == name for kept in self._graph.variables):
            raise BuildError(f'there is a variable "{name}" already')
        optional = {"default": default, "maxSize": max_size}
        given = {key: value for key, value in optional.items() if value is not None}
        self._graph.channels[name] = {"reducer": reducer, **given, **more}
        return Variable(name, self._graph)

    def join(
        self,
        id: str,
        *chains: Chain,
        rule: Literal["all_success", "any_success", "all_complete", "none_failed", "any_failed"] = "all_success",
    ) -> Chain:
        """Continues after several chains that were built apart."""
        joined = Chain(self._graph, [])
        wanted = None if rule == "all_success" else rule
        return joined._at(joined._graph.add_node(id, "core.merge", {}, _ends(self._graph, chains, wanted)))

    def definition(self) -> dict[str, Any]:
        """The definition that `workflows.register` takes. Raises BuildError for a step that is named and not there."""
        return document(self._graph, self._head, self._tail)

    def to_json(self) -> str:
        """The same as a file for `baton workflow validate` and for folders of workflows."""
        return json.dumps(self.definition(), indent=2, ensure_ascii=False) + "\n"

    @overload
    def check(self, client: Client) -> None: ...

    @overload
    def check(self, client: AsyncClient) -> Coroutine[Any, Any, None]: ...

    def check(self, client: Client | AsyncClient) -> Coroutine[Any, Any, None] | None:
        """Asks the host. Raises InvalidWorkflow with each problem at the line that built that part."""
        return client.workflows.check(self)

    def part_at(self, pointer: str) -> tuple[str, Site]:
        """What a JSON pointer into the definition points at, and the line that built it."""
        return self._graph.part_at(pointer)


def _ends(graph: Graph, chains: tuple[Chain, ...], rule: str | None) -> Any:
    if not chains or any(chain._graph is not graph or not chain._ends for chain in chains):
        raise BuildError("only chains of this workflow that have not ended can be joined")
    return [Place(end.node, end.column, end.port, end.rule or rule) for chain in chains for end in chain._ends]


def _about(description: str | None, sensitive: bool) -> dict[str, Any]:
    about: dict[str, Any] = {} if description is None else {"description": description}
    return {**about, "sensitive": True} if sensitive else about
