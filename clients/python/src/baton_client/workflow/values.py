"""Where the values of steps come from: a constant, a variable, another step's output, or a CEL expression."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_WORD = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_TEXTS = re.compile(r"""r?'(?:\\.|[^'\\])*'|r?"(?:\\.|[^"\\])*\"""")
_NODE = re.compile(r"""(?<![A-Za-z0-9_.])nodes(?:\.([A-Za-z_][A-Za-z0-9_]*)|\[\s*(?:'([^']*)'|"([^"]*)")\s*\])""")


@dataclass(frozen=True)
class Variable(Generic[T]):
    """A variable of a workflow. In an f-string it is its CEL name: `cel(f"{price} * 2")`."""

    name: str
    owner: object

    def __str__(self) -> str:
        return f"variables{_member(self.name)}"


@dataclass(frozen=True)
class Output:
    """An output of a step. In an f-string it is its CEL name."""

    node: str
    key: str
    optional: bool = False

    def __str__(self) -> str:
        return f"nodes{_member(self.node)}{_member(self.key)}"


@dataclass(frozen=True)
class Expression:
    text: str

    def __str__(self) -> str:
        return self.text


Value = Expression | Variable[Any] | Output | Any
"""A constant (any JSON), or where the value comes from."""


def cel(text: str) -> Expression:
    """A CEL expression. It may use `variables`, `inputs` and `nodes`."""
    return Expression(text)


def output(node: str, key: str, *, optional: bool = False) -> Output:
    """What a step gives: `output("review", "action")`."""
    return Output(node, key, optional)


def is_computed(value: Value) -> bool:
    return isinstance(value, (Expression, Variable, Output))


def either(constant: str, expression: str, value: Value) -> dict[str, Any]:
    """The member of a configuration that takes a constant, or the one beside it that takes an expression."""
    return {expression: str(value)} if is_computed(value) else {constant: value}


def source(value: Value) -> dict[str, Any]:
    """An entry of a node's `inputs`."""
    if isinstance(value, Variable):
        return {"type": "variable", "variableName": value.name}
    if isinstance(value, Output):
        optional = {"optional": True} if value.optional else {}
        return {"type": "connection", "nodeId": value.node, "outputKey": value.key, **optional}
    if isinstance(value, Expression):
        return {"type": "expression", "expression": value.text}
    return {"type": "static", "value": value}


def sources(values: Mapping[str, Value]) -> dict[str, Any]:
    return {name: source(value) for name, value in values.items()}


def nodes_named(text: str) -> list[str]:
    """The steps that a CEL expression names. Text constants do not count, but `nodes['a-b']` does."""
    bare = _TEXTS.sub(lambda found: found[0] if text[: found.start()].rstrip().endswith("nodes[") else "''", text)
    return [next(name for name in found if name) for found in _NODE.findall(bare) if any(found)]


def _member(name: str) -> str:
    if _WORD.match(name):
        return f".{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"
