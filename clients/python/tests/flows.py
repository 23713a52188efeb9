"""Workflows that tests run."""

from __future__ import annotations

from baton_client import Workflow
from baton_client.workflow import cel, delay, set_variable


def gate() -> Workflow:
    """Asks once, then says what was decided."""
    wf = Workflow("gate")
    text = wf.variable("text", str, "a draft")
    wf.approve("review", "Send it?", artifact=text, on_reject=lambda way: way.end("rejected", {"sent": False})).end(
        "done", {"sent": True, "text": text}
    )
    return wf


def ticks(count: int, ms: int) -> Workflow:
    """Takes a while, with events all the time."""
    wf = Workflow("ticks")
    round_ = wf.variable("round", int, 0)
    last = wf.variable("last", int, 0)
    return_to = wf.loop(
        "each",
        lambda way: way.step("wait", delay(ms)).step("note", set_variable(last, cel(str(round_)))),
        count=count,
        into=round_,
    )
    return_to.end("done", {"last": last})
    return wf


def hello() -> Workflow:
    wf = Workflow("hello")
    name = wf.input("name", str)
    greeting = wf.variable("greeting", str)
    wf.step("greet", set_variable(greeting, cel(f"'Hello, ' + {name} + '!'"))).end("done", {"greeting": greeting})
    return wf
