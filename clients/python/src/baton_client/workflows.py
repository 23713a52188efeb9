"""Registering and reading workflows."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, cast

from . import api
from .request import Request, Steps, change, get, path, send
from .surface import Group, M, call
from .workflow import Workflow
from .workflow.problems import raise_problems

Definition = Workflow | Mapping[str, Any]


class Workflows(Group[M]):
    @call
    def register(self, definition: Definition) -> Steps[api.WorkflowVersion]:
        """Registers a version. The same content again changes nothing."""
        return send(change("POST", "v1", "workflows", json=_plain(definition)), self._options)

    @call
    def validate(self, definition: Definition) -> Steps[api.Validation]:
        """What the host has to say about a definition. Registers nothing."""
        return send(_validate(definition), self._options)

    @call
    def check(self, workflow: Workflow) -> Steps[None]:
        """Raises InvalidWorkflow with each problem at the line that built that part of the workflow."""
        raise_problems(workflow, (yield from send(_validate(workflow), self._options)))

    @call
    def list(self) -> Steps[builtins.list[api.WorkflowVersion]]:
        """The newest version of each workflow."""
        page = yield from send(get("v1", "workflows"), self._options)
        return cast("list[api.WorkflowVersion]", page["workflows"])

    @call
    def get(self, workflow_id: str, *, version: int | None = None) -> Steps[api.WorkflowDefinition]:
        """A definition: the newest, or that of one version."""
        if version is None:
            return send(get("v1", "workflows", workflow_id), self._options)
        segments = ("v1", "host", "baton", "workflows", workflow_id, "versions", str(version))
        return send(get(*segments), self._options)

    @call
    def versions(self, workflow_id: str) -> Steps[builtins.list[api.WorkflowVersion]]:
        """Every version, newest first."""
        page = yield from send(get("v1", "host", "baton", "workflows", workflow_id, "versions"), self._options)
        return cast("list[api.WorkflowVersion]", page["versions"])


def _plain(definition: Definition) -> Mapping[str, Any]:
    return definition.definition() if isinstance(definition, Workflow) else definition


def _validate(definition: Definition) -> Request:
    return Request("POST", path("v1", "host", "baton", "workflows", "validate"), json=_plain(definition))
