"""The builder: what it makes, and which mistakes it finds where."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable
from pathlib import Path

import examples
import pytest
from host import REPOSITORY

from baton_client import AsyncClient, Client, Workflow
from baton_client.workflow import BuildError, Chain, InvalidWorkflow, cel, delay, http, node, output, set_variable, tool
from baton_client.workflow.values import nodes_named

SNAPSHOTS = REPOSITORY / "clients/snapshots"


def here() -> int:
    frame = inspect.currentframe()
    assert frame and frame.f_back
    return frame.f_back.f_lineno


@pytest.mark.parametrize("name", examples.ALL)
def test_the_same_program_gives_the_same_bytes(name: str) -> None:
    """In both languages. BATON_BLESS=1 writes the snapshots again."""
    text = examples.ALL[name]().to_json()
    assert examples.ALL[name]().to_json() == text
    if os.environ.get("BATON_BLESS"):
        (SNAPSHOTS / f"{name}.json").write_text(text)
    assert (SNAPSHOTS / f"{name}.json").read_text() == text


@pytest.mark.parametrize("name", examples.ALL)
def test_the_host_takes_what_is_built(client: Client, name: str) -> None:
    workflow = examples.ALL[name]()
    workflow.check(client)
    client.workflows.register(workflow)
    assert client.workflows.get(workflow.id) == workflow.definition()
    assert client.workflows.versions(workflow.id)[0]["workflowId"] == name
    assert name in [one["workflowId"] for one in client.workflows.list()]


def test_what_is_built_runs(client: Client) -> None:
    client.workflows.register(examples.order())
    small = client.runs.start(examples.order(), inputs={"price": 2.5, "amount": 4.0})
    done = client.runs.wait(small["runId"])
    assert (done["status"], done["outputs"]["total"], done["outputs"]["currency"]) == ("completed", 10, "CHF")
    large = client.runs.start(examples.order(), inputs={"price": 2.5, "amount": 400.0})
    client.interrupts.reject(client.runs.wait(large["runId"]), voter="grace")
    assert client.runs.wait(large["runId"]).get("error", {}).get("code") == "order_refused"
    accepted = client.runs.start(examples.order(), inputs={"price": 2.5, "amount": 400.0})
    client.interrupts.approve(client.runs.wait(accepted["runId"]), voter="ada")
    assert client.runs.wait(accepted["runId"])["outputs"]["total"] == 1000


def test_ways_that_fail_or_branch_meet_again(client: Client) -> None:
    wf = Workflow("meeting")
    way = wf.variable("way", str, "")
    failing = wf.step(
        "try",
        http("https://127.0.0.1:9/", method="GET"),
        on_failure=lambda w: w.step("save", set_variable(way, "saved")),
    )
    failing.branch(
        "which", f"{way} == 'saved'", then=lambda w: w.step("one", delay(0)), otherwise=lambda w: w.end("never")
    ).end("done", {"way": way})
    wf.check(client)
    client.workflows.register(wf)
    assert client.runs.wait(client.runs.start(wf)["runId"])["outputs"] == {"way": "saved"}


def test_problems_are_shown_at_the_line_that_made_them(client: Client) -> None:
    wf = Workflow("broken")
    start = wf.step("fine", delay(1))
    start.step("wrong", node("core.delay", {"mss": 5})); wrong = here()  # fmt: skip
    start.branch("odd", cel("1 +"), then=lambda way: way.step("x", "core.noop")); odd = here()  # fmt: skip
    with pytest.raises(InvalidWorkflow) as caught:
        wf.check(client)
    found = {(problem.part, problem.site.line) for problem in caught.value.problems}
    assert found == {('step "wrong"', wrong), ('step "odd"', odd)}
    assert all(problem.site.file == __file__ and problem.pointer and problem.code for problem in caught.value.problems)
    assert f'{__file__}:{wrong}: step "wrong"' in str(caught.value)


def test_the_same_for_asyncio(client: Client) -> None:
    async def scenario() -> None:
        async with AsyncClient(client.url, client._address.headers["Authorization"].removeprefix("Bearer ")) as away:
            await examples.order().check(away)
            wf = Workflow("bad")
            wf.step("x", "core.unknown")
            with pytest.raises(InvalidWorkflow):
                await wf.check(away)

    asyncio.run(scenario())


def again(wf: Workflow) -> None:
    wf.step("a", delay(1)).step("a", delay(1))


def behind_the_end(wf: Workflow) -> None:
    wf.end().step("a", delay(1))


def behind_a_fork_of_ends(wf: Workflow) -> None:
    wf.branch("b", "true", then=lambda way: way.end("c"), otherwise=lambda way: way.end("d")).step("a", delay(1))


def nobody(wf: Workflow) -> None:
    wf.end(outputs={"x": output("nobody", "y")})
    wf.definition()


def nobody_in_cel(wf: Workflow) -> None:
    wf.step("a", delay(1)).branch("b", cel("nodes['no-body'].x == 1"), then=lambda way: way.end("c"))
    wf.definition()


def twice_a_variable(wf: Workflow) -> None:
    wf.variable("x", str)
    wf.input("x", int)


def of_another(wf: Workflow) -> None:
    wf.end(outputs={"x": Workflow("other").variable("x", str)})


def loop_of_nothing(wf: Workflow) -> None:
    wf.loop("l", lambda way: way, count=3)


def loop_of_two_kinds(wf: Workflow) -> None:
    wf.loop("l", lambda way: way.step("a", delay(1)), count=3, items=cel("[1]"))


def failure_of_nothing(wf: Workflow) -> None:
    wf.step("a", delay(1), on_failure=lambda way: way)


def way_of_another(wf: Workflow) -> None:
    wf.parallel("p", lambda way: Workflow("other").step("a", delay(1)))


def empty(wf: Workflow) -> None:
    wf.definition()


def no_decider(wf: Workflow) -> None:
    wf.supervise("lead")


def join_of_nothing(wf: Workflow) -> None:
    wf.join("j", wf.end())


MISTAKES: dict[Callable[[Workflow], None], str] = {
    again: 'there is a step "a" already, from',
    behind_the_end: 'nothing can follow here, but the step "a" does',
    behind_a_fork_of_ends: 'nothing can follow here, but the step "a" does',
    nobody: 'there is no step "nobody"',
    nobody_in_cel: 'there is no step "no-body"',
    twice_a_variable: 'there is a variable "x" already',
    of_another: 'the variable "x" is one of another workflow',
    loop_of_nothing: 'the body of the loop "l" adds no step',
    loop_of_two_kinds: 'the loop "l" needs one of items, count and while_',
    failure_of_nothing: 'on_failure of "a" adds no step',
    way_of_another: 'a way behind "p" must give back the chain it was given',
    empty: 'the workflow "mistaken" has no step',
    no_decider: 'the supervisor "lead" needs either rules or agent_id',
    join_of_nothing: "only chains of this workflow that have not ended can be joined",
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_mistakes_are_found_where_they_are_made(mistake: Callable[[Workflow], None]) -> None:
    with pytest.raises(BuildError) as caught:
        mistake(Workflow("mistaken"))
    assert MISTAKES[mistake] in str(caught.value)
    assert Path(caught.value.site.file) == Path(__file__) and str(caught.value).startswith(f"{__file__}:")


@pytest.mark.parametrize("name", ["", "Order", "1st", "a b", "x" * 129])
def test_ids_that_the_host_would_refuse(name: str) -> None:
    with pytest.raises(BuildError):
        Workflow(name)


def test_expressions_name_steps_outside_of_texts_only() -> None:
    assert nodes_named("nodes.a.x + nodes['b-c'].y + nodes[\"d\"].z") == ["a", "b-c", "d"]
    assert nodes_named("'nodes.a.x' == \"nodes['b']\" && my_nodes.c && variables.nodes.d") == []
    assert nodes_named(r"'it\'s nodes.a' + nodes.b.c") == ["b"]


def test_a_chain_can_be_continued_twice() -> None:
    wf = Workflow("twice")
    first = wf.step("a", delay(1))
    assert isinstance(first, Chain)
    first.step("b", delay(1))
    first.step("c", delay(1))
    assert [edge["id"] for edge in wf.definition()["edges"]] == ["a-b", "a-c"]


def test_edges_have_names_of_their_own(client: Client) -> None:
    wf = Workflow("alike")
    wf.step("a-b", delay(1)).step("c", delay(1))
    wf.step("a", delay(1)).step("b-c", delay(1))
    assert [edge["id"] for edge in wf.definition()["edges"]] == ["a-b-c", "a-b-c-2"]
    wf.check(client)


def test_a_definition_is_a_copy() -> None:
    wf = Workflow("copy")
    wf.step("a", delay(1))
    wf.definition()["nodes"][0]["config"]["ms"] = 2
    assert wf.definition()["nodes"][0]["config"] == {"ms": 1}


def test_tools_take_constants_and_expressions() -> None:
    assert tool("mcp:docs.search", {"q": "x"}, on_tool_error="return").config == {
        "tool": "mcp:docs.search",
        "arguments": {"q": "x"},
        "onToolError": "return",
    }
    assert tool("t", cel("variables.a")).config == {"tool": "t", "argumentsExpression": "variables.a"}


def test_a_large_workflow_is_built_in_time_that_grows_with_its_size() -> None:
    wf = Workflow("large")
    chain: Chain = wf
    for number in range(3000):
        chain = chain.step(f"s{number}", delay(0))
    assert len(wf.definition()["edges"]) == 2999


def test_a_map_goes_through_a_list_with_a_tool_an_agent_or_a_workflow(client: Client) -> None:
    wf = Workflow("mapped")
    orders = wf.variable("orders", list, [{"sku": "tea"}])
    found = wf.variable("found", list, [])
    wf.map(
        "stock",
        items=orders,
        tool="runner:shop.stock",
        item_name="order",
        arguments=cel("{'sku': order.sku}"),
        max_concurrency=4,
        on_item_error="collect",
        into=found,
    ).map("again", items=["a", "b"], workflow="hello", workflow_inputs={"name": "Ada"})
    stock, again = (node["config"] for node in wf.definition()["nodes"])
    assert stock == {
        "itemsExpression": "variables.orders", "argumentsExpression": "{'sku': order.sku}", "tool": "runner:shop.stock",
        "maxConcurrency": 4, "onItemError": "collect", "into": "found", "as": "order",
    }  # fmt: skip
    assert again == {"items": ["a", "b"], "inputs": {"name": "Ada"}, "workflow": "hello"}
    wf.check(client)
    with pytest.raises(BuildError):
        wf.map("nothing", items=[1])
