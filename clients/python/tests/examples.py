"""Workflows of every kind that the builder knows. typescript/tests/examples.js builds the same."""

from __future__ import annotations

from baton_client import Workflow
from baton_client.workflow import (
    agent,
    ask_user,
    cel,
    delay,
    http,
    memory_list,
    memory_put,
    next_worker,
    node,
    output,
    rule,
    set_variable,
    set_variables,
    structured_output,
    sub_workflow,
    terminate,
    workspace_get,
    workspace_put,
    write_channel,
)


def order() -> Workflow:
    wf = Workflow("order", name="Order", description="Prices an order; a large one needs a yes.")
    price = wf.input("price", float, description="Of one piece")
    amount = wf.input("amount", int)
    total = wf.variable("total", float, 0)
    note = wf.variable("note", str, "", sensitive=True)
    priced = wf.step(
        "price", set_variable(total, cel(f"double({price}) * double({amount})")), name="Work out the price"
    )
    checked = priced.branch(
        "size-up",
        cel(f"{total} > 100.0"),
        then=lambda way: way.approve(
            "sign-off",
            "A large order. Go on?",
            artifact=total,
            required_approvals=1,
            approvers=["ada", "grace"],
            timeout_ms=86_400_000,
            on_reject=lambda no: no.fail("refuse", "order_refused", "Nobody wanted it."),
        ),
    )
    both = checked.parallel(
        "prepare",
        lambda way: way.step("pick", delay(5)).step("pack", delay(5)),
        lambda way: way.step("invoice", set_variables({"note": cel("'paid'")}), retries=2, retry_delay_ms=10),
    )
    both.end(
        outputs={"total": total, "note": note, "by": output("sign-off", "decidedBy", optional=True), "currency": "CHF"}
    )
    return wf


def letters() -> Workflow:
    wf = Workflow("letters", version="2.1.0", settings={"maxRetries": 1}, metadata={"owner": "team"})
    wf.channel("notes", "append", max_size=50)
    names = wf.variable("names", list, ["Ada", "Grace"])
    name = wf.variable("name", str)
    entries = wf.variable("entries", list)
    answers = wf.ask("ask", {"audience": "Who reads this?", "length": "How many pages?"})
    looped = answers.loop(
        "each",
        lambda way: way.step("write", write_channel("notes", cel(f"'Dear ' + {name}"))).approve(
            "read", on_refine=lambda again: again.step("shorten", delay(0))
        ),
        items=names,
        into=name,
        max_iterations=10,
    )
    kept = looped.step("keep", memory_put(cel("variables.notes[0]"), tags=["letter"], ttl_seconds=3600))
    listed = kept.step("list", memory_list(entries, tag="letter", limit=5)).step(
        "file", workspace_put("letters/last.md", "none")
    )
    listed.step("look", workspace_get("letters/last.md", "last")).wait_for_event(
        "posted", "letter.posted", {"batch": "b-1"}, timeout_ms=1000
    ).step("pens", sub_workflow("order", input_mapping={"price": "name"}, on_child_failure="absorb")).end(
        "done", {"audience": cel("nodes.ask.answers.audience")}
    )
    return wf


def calls() -> Workflow:
    wf = Workflow("calls", configurable_schema={"type": "object", "properties": {"tone": {"enum": ["formal"]}}})
    page = wf.variable("page", dict)
    query = wf.variable("query", str, "tides")
    fetched = wf.step(
        "fetch",
        http(cel(f"'https://example.org/?q=' + {query}"), into=page, headers={"accept": "text/plain"}),
        timeout_ms=5000,
        on_failure=lambda way: way.step("explain", set_variable(page, {"status": 0})),
    )
    sent = wf.step("send", http("https://example.org/in", method="POST", body={"a": [1, None]}, outcome_policy="fail"))
    joined = wf.join("meet", fetched, sent, rule="none_failed")
    joined.step(
        "judge", agent("private.team.judge", temperature=0.2, tools=["openwop:http.fetch"]), inputs={"text": page}
    ).step(
        "extract", structured_output({"type": "object"}, system_prompt="Find the date."), inputs={"messages": []}
    ).step("last", node("core.identity"), inputs={"data": output("extract", "data")}, primary=True)
    return wf


def team() -> Workflow:
    wf = Workflow("team")
    summary = wf.variable("summary", str, "")
    topic = wf.input("topic", str)
    wf.supervise(
        "lead",
        rules=[
            rule(cel("iteration > 5"), ask_user("Go on?")),
            rule(f"{summary} == ''", next_worker("summarise", confidence=0.9, inputs=[{"style": "short"}])),
        ],
        otherwise=terminate("summarised"),
        inputs={"topic": topic},
        input_mapping={"text": "topic"},
        output_mapping={"summary": "summary"},
        iteration_cap=10,
        fan_out="parallel",
        max_concurrency=2,
        join={"mode": "wait-all"},
    )
    return wf


ALL = {"order": order, "letters": letters, "calls": calls, "team": team}
