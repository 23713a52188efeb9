#!/usr/bin/env python3
"""Writes the types of both clients from the recorded OpenAPI document.

clients/generate.py            writes clients/python/src/baton_client/api.py and clients/typescript/src/api.ts
clients/generate.py --check    fails if one of them is not what would be written
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "crates/server/tests/it/http_bytes/openapi.json"
HEAD = "Generated from the OpenAPI document by clients/generate.py. Do not edit."
WIDTH = 110

Schema = dict[str, Any]


class Python:
    """Every object is a TypedDict: what the host sends is what the caller holds, unknown members included."""

    path = ROOT / "clients/python/src/baton_client/api.py"
    any, unknown, number, integer, text, boolean, null = "Any", "Any", "float", "int", "str", "bool", "None"

    def literal(self, value: Any) -> str:
        return f"Literal[{json.dumps(value)}]"

    def array(self, item: str) -> str:
        return f"List[{item}]"

    def record(self, value: str) -> str:
        return f"Dict[str, {value}]"

    def whole(self, types: list[str]) -> str:
        head = f'"""{HEAD}"""\n\nfrom __future__ import annotations\n\nimport sys\n'
        head += "from typing import Any, Dict, List, Literal, Optional, TypedDict, Union\n\n"
        head += "if sys.version_info >= (3, 11):\n    from typing import NotRequired\nelse:\n"
        head += '    from typing_extensions import NotRequired\n\nJson = Any\n"""Any JSON value."""\n'
        return head + "".join(types)

    def declare(self, name: str, schema: Schema, types: Types) -> str:
        bases, members, required = types.members(schema)
        if members is None:
            return f"\n{name} = {types.shape(schema)}\n" + self.doc(schema.get("description"), "")
        fields = []
        for member, of in members.items():
            shape = types.shape(types.present(of) if member not in required else of)
            fields.append((member, shape if member in required else f"NotRequired[{shape}]", of.get("description")))
        if any(keyword.iskeyword(member) for member, _, _ in fields):
            # A class cannot have a member of that name.
            inner = "".join(f"        {member!r}: {shape!r},\n".replace("'", '"') for member, shape, _ in fields)
            return f'\n{name} = TypedDict(\n    "{name}",\n    {{\n{inner}    }},\n)\n'
        body = self.doc(schema.get("description"), "    ")
        body += "".join(f"    {member}: {shape}\n{self.doc(about, '    ')}" for member, shape, about in fields)
        return f"\n\nclass {name}({', '.join(bases or ['TypedDict'])}):\n{body or '    pass' + chr(10)}"

    def doc(self, text: Any, indent: str) -> str:
        if not text:
            return ""
        lines = textwrap.wrap(" ".join(text.split()), WIDTH - len(indent) - 6) or [""]
        if len(lines) == 1:
            return f'{indent}"""{lines[0]}"""\n'
        return indent + '"""' + f"\n{indent}".join(lines) + f'\n{indent}"""\n'


class TypeScript:
    path = ROOT / "clients/typescript/src/api.ts"
    any, unknown, number, integer, text, boolean, null = (
        "Json",
        "unknown",
        "number",
        "number",
        "string",
        "boolean",
        "null",
    )

    def literal(self, value: Any) -> str:
        return json.dumps(value)

    def array(self, item: str) -> str:
        return f"({item})[]" if "|" in item or "&" in item else f"{item}[]"

    def record(self, value: str) -> str:
        return f"Record<string, {value}>"

    def whole(self, types: list[str]) -> str:
        return f"// {HEAD}\n\n/** Any JSON value. */\nexport type Json = any;\n" + "".join(types)

    def declare(self, name: str, schema: Schema, types: Types) -> str:
        bases, members, required = types.members(schema)
        head = self.doc(schema.get("description"), "")
        if members is None:
            return f"\n{head}export type {name} = {types.shape(schema)};\n"
        body = ""
        for member, of in members.items():
            always = member in required
            shape = types.shape(of if always else types.present(of))
            body += f"{self.doc(of.get('description'), '  ')}  {member}{'' if always else '?'}: {shape};\n"
        whole = f"{{\n{body}}}" if body else "Record<string, never>"
        return f"\n{head}export type {name} = {' & '.join([*bases, whole])};\n"

    def doc(self, text: Any, indent: str) -> str:
        return f"{indent}/** {' '.join(text.split())} */\n" if text else ""


class Types:
    """What a schema is in one language."""

    def __init__(self, language: Any, schemas: dict[str, Schema]) -> None:
        self.language = language
        self.schemas = schemas
        self.named: Callable[[str], str] = lambda name: name

    def shape(self, schema: Schema) -> str:
        to = self.language
        if "$ref" in schema:
            return str(schema["$ref"].rsplit("/", 1)[1])
        if "enum" in schema:
            return self.union([to.literal(value) for value in schema["enum"]])
        for word in ("oneOf", "anyOf"):
            if word in schema:
                return self.union([self.shape(part) for part in schema[word]])
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return self.union([self.of_kind(kind, schema) for kind in kinds])
        return self.of_kind(kinds, schema) if kinds else str(to.any)

    def of_kind(self, kind: str, schema: Schema) -> str:
        to = self.language
        if kind == "array":
            return str(to.array(self.shape(schema.get("items", {}))))
        if kind == "object":
            values = schema.get("additionalProperties")
            return str(to.record(self.shape(values) if isinstance(values, dict) and values else to.any))
        return str(
            {"integer": to.integer, "number": to.number, "string": to.text, "boolean": to.boolean, "null": to.null}[
                kind
            ]
        )

    def union(self, shapes: list[str]) -> str:
        distinct = list(dict.fromkeys(shapes))
        if isinstance(self.language, TypeScript):
            return " | ".join(distinct)
        literals = [shape[8:-1] for shape in distinct if shape.startswith("Literal[")]
        others = [shape for shape in distinct if not shape.startswith(("Literal[", "None"))]
        if literals:
            others.insert(0, f"Literal[{', '.join(literals)}]")
        whole = others[0] if len(others) == 1 else f"Union[{', '.join(others)}]"
        return f"Optional[{whole}]" if "None" in distinct else whole

    def present(self, schema: Schema) -> Schema:
        """The schema of a member that may be absent: the host leaves out what it has not got and sends no null for it."""
        if isinstance(schema.get("type"), list):
            kinds = [kind for kind in schema["type"] if kind != "null"]
            return {**schema, "type": kinds[0] if len(kinds) == 1 else kinds}
        if "oneOf" in schema:
            parts = [part for part in schema["oneOf"] if part.get("type") != "null"]
            return parts[0] if len(parts) == 1 else {**schema, "oneOf": parts}
        return schema

    def members(self, schema: Schema) -> Any:
        """The named types that an object includes, its own members (none: it is no object), and which are required."""
        bases: list[str] = []
        members: dict[str, Schema] = dict(schema.get("properties", {}))
        required = set(schema.get("required", []))
        for part in schema.get("allOf", []):
            if "$ref" in part:
                bases.append(part["$ref"].rsplit("/", 1)[1])
            members.update(part.get("properties", {}))
            required.update(part.get("required", []))
        is_object = bool(members) or bool(bases) or schema.get("additionalProperties") is False
        return bases, members if is_object else None, required


def ordered(schemas: dict[str, Schema]) -> list[str]:
    """By name, but after the types that they extend."""
    done: list[str] = []

    def add(name: str) -> None:
        for part in schemas[name].get("allOf", []):
            if "$ref" in part:
                add(part["$ref"].rsplit("/", 1)[1])
        if name not in done:
            done.append(name)

    for name in sorted(schemas):
        add(name)
    return done


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__, file=sys.stderr)
        return 2
    schemas = json.loads(DOCUMENT.read_text("utf-8"))["components"]["schemas"]
    stale = []
    for language in (Python(), TypeScript()):
        types = Types(language, schemas)
        text = language.whole([language.declare(name, schemas[name], types) for name in ordered(schemas)])
        if not check:
            language.path.write_text(text, "utf-8")
        elif not language.path.exists() or language.path.read_text("utf-8") != text:
            stale.append(str(language.path.relative_to(ROOT)))
    if stale:
        print(f"Not what the OpenAPI document says: {', '.join(stale)}. Run clients/generate.py.", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
