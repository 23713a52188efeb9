"""Mistakes in a workflow, each at the line of the program that made it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import api
from ..errors import BatonError

if TYPE_CHECKING:
    from .builder import Workflow

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass(frozen=True)
class Site:
    """A line of the program that builds a workflow."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Site:
    """The nearest line outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno)


class BuildError(ValueError, BatonError):
    """The program builds something that can be no workflow."""

    def __init__(self, message: str, site: Site | None = None) -> None:
        self.site = site or caller()
        super().__init__(f"{self.site}: {message}")


@dataclass(frozen=True)
class BuildProblem:
    """What the host has to say about one part of a workflow."""

    message: str
    code: str
    pointer: str
    part: str
    """Such as `step "review"`, or `the workflow`."""
    site: Site

    def __str__(self) -> str:
        return f"{self.site}: {self.part}: {self.message} [{self.code}] ({self.pointer or 'the whole'})"


class InvalidWorkflow(BatonError):
    """The host would refuse to register the workflow."""

    def __init__(self, workflow_id: str, problems: list[BuildProblem]) -> None:
        self.problems = problems
        super().__init__("\n".join([f"the workflow {workflow_id} is not valid:", *(f"  {one}" for one in problems)]))


def raise_problems(workflow: Workflow, validation: api.Validation) -> None:
    if validation["valid"]:
        return
    problems = []
    for said in validation["problems"]:
        part, site = workflow.part_at(said["pointer"])
        problems.append(BuildProblem(said["message"], said["code"], said["pointer"], part, site))
    raise InvalidWorkflow(workflow.id, problems)
