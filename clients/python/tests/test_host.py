"""Against a real host."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Any

import flows
import pytest
from host import Host
from proxy import STALL, SWALLOW, Cut, Hold, Plan, Proxy, Say

from baton_client import (
    AlreadyAnswered,
    AsyncClient,
    Client,
    ConnectionFailed,
    NotFound,
    Options,
    TimedOut,
    Unauthenticated,
    Unavailable,
)
from baton_client.errors import InvalidRequest

STREAM = Options(silence=2.0)


def sequences(events: list[Any]) -> list[int]:
    return [event["sequence"] for event in events]


def test_start_stream_and_wait(client: Client) -> None:
    client.workflows.register(flows.hello())
    run = client.runs.start("hello", inputs={"name": "Ada"}, tags=["greeting"])
    events = list(client.runs.events(run["runId"], mode="debug"))
    assert sequences(events) == list(range(len(events))) and events[-1]["type"] == "run.completed"
    done = client.runs.wait(run["runId"], until="ended")
    assert done["outputs"] == {"greeting": "Hello, Ada!"}
    assert list(client.runs.events(run["runId"], after=events[-1]["sequence"])) == []
    assert [item["runId"] for item in client.runs.list(tag="greeting")] == [run["runId"]]
    assert list(client.runs.states(run["runId"]))[-1]["status"] == "completed"
    page = client.runs.poll(run["runId"], after=1, limit=2)
    assert sequences(page["events"]) == [2, 3] and not page["isComplete"]


def test_answers_count_once(client: Client) -> None:
    client.workflows.register(flows.gate())
    run = client.runs.start(flows.gate())["runId"]
    waiting = client.runs.wait(run)
    assert waiting["status"] == "waiting-approval"
    question = client.interrupts.list(run_id=run)[0]
    with pytest.raises(TimedOut):
        client.runs.wait(run, until="ended", timeout=1)
    with pytest.raises(InvalidRequest):
        client.interrupts.answer(run, "review", {"action": "perhaps"}, interrupt_id=question["interruptId"])
    client.interrupts.approve(question, feedback="go")
    assert client.runs.wait(run)["outputs"] == {"sent": True, "text": "a draft"}
    for again in (question, waiting):
        with pytest.raises(AlreadyAnswered) as caught:
            client.interrupts.reject(again)
        assert caught.value.status == 409 and not caught.value.retriable


def test_fork_diff_verify_and_state(client: Client) -> None:
    client.workflows.register(flows.gate())
    run = client.runs.start("gate")["runId"]
    client.interrupts.approve(client.runs.wait(run))
    client.runs.wait(run)
    answer = next(event for event in client.runs.events(run, mode="debug") if event["type"] == "node.resumed")
    branch = client.runs.fork(run, at=answer["sequence"], variables={"text": "another"})["runId"]
    client.interrupts.reject(client.runs.wait(branch))
    assert client.runs.wait(branch)["outputs"] == {"sent": False}
    diff = client.runs.diff(run, branch)
    assert diff["divergedAtSeq"] == answer["sequence"] and diff["eventDiffs"]
    assert client.runs.verify(run)["equal"]
    replay = client.runs.wait(client.runs.replay(run)["runId"], until="ended")
    assert replay["outputs"] == {"sent": True, "text": "a draft"}
    assert client.runs.state(run, at=answer["sequence"] - 1)["status"] == "waiting-approval"
    assert client.runs.import_(client.runs.export(run))["alreadyHere"]
    client.runs.annotate(run, {"kind": "rating", "rating": 4}, note="right")
    assert [one["signal"]["rating"] for one in client.runs.annotations(run)] == [4]


def test_pause_resume_and_cancel(client: Client) -> None:
    client.workflows.register(flows.gate())
    run = client.runs.start("gate")["runId"]
    client.runs.wait(run)
    cancelled = client.runs.cancel(run, reason="enough")
    assert cancelled["status"] in ("cancelling", "cancelled")
    assert client.runs.wait(run, until="ended")["status"] == "cancelled"
    client.workflows.register(flows.ticks(50, 50))
    run = client.runs.start("ticks")["runId"]
    client.runs.pause(run, drain_policy="immediate")
    assert client.runs.wait(run)["status"] == "paused"
    client.runs.resume(run)
    assert client.runs.cancel_many([run])["results"][0]["ok"]


def test_memory_and_workspace(client: Client) -> None:
    entry = client.memory.put("python", "remember me", tags=["a"])
    assert [one["id"] for one in client.memory.list("python", tag="a")] == [entry["id"]]
    client.memory.delete("python", entry["id"])
    with pytest.raises(NotFound):
        client.memory.get("python", entry["id"])
    name = "notes/a-b.md"
    first = client.workspace.put(name, "one")
    second = client.workspace.put(name, "two", if_match=first["etag"])
    with pytest.raises(Exception) as caught:
        client.workspace.put(name, "three", if_match=first["etag"])
    assert getattr(caught.value, "status", None) in (409, 412)
    assert client.workspace.get(name)["content"] == "two" and second["version"] == 2
    assert name in [file["path"] for file in client.workspace.list(prefix="notes/")]
    client.workspace.delete(name)


def test_agents_and_discovery(client: Client) -> None:
    assert client.host.discover()["implementation"]["name"]
    assert client.host.system()["version"]
    agent = client.agents.list()[0]["agentId"]
    assert client.agents.get(agent)["agentId"] == agent and client.agents.effective(agent)
    assert isinstance(client.agents.tools(), list)


def test_typed_refusals(host: Host, client: Client) -> None:
    with pytest.raises(NotFound) as missing:
        client.runs.get("run_00000000000000000000000000000000")
    assert missing.value.code
    with Client(host.url, "wrong") as stranger, pytest.raises(Unauthenticated):
        stranger.runs.get("run_1")
    with Client("http://127.0.0.1:9", "k") as nobody, pytest.raises(ConnectionFailed):
        nobody.with_options(retries=1).runs.get("run_1")


def test_pages_of_many_runs(client: Client) -> None:
    client.workflows.register(flows.hello())
    tag = str(uuid.uuid4())
    started = {client.runs.start("hello", inputs={"name": str(n)}, tags=[tag])["runId"] for n in range(60)}
    listed = [item["runId"] for item in client.runs.list(tag=tag, page_size=7)]
    assert len(listed) == 60 and set(listed) == started


def test_a_reply_that_is_lost_starts_no_second_run(host: Host, client: Client) -> None:
    client.workflows.register(flows.hello())
    tag = str(uuid.uuid4())
    with Proxy(host.url, SWALLOW, Cut(40), SWALLOW) as proxy, Client(proxy.url, host.key) as away:
        run = away.runs.start("hello", inputs={"name": "Ada"}, tags=[tag])
        assert len(proxy.requests) == 4
    assert [item["runId"] for item in client.runs.list(tag=tag)] == [run["runId"]]


def test_an_answer_whose_reply_is_lost_counts_once(host: Host, client: Client) -> None:
    client.workflows.register(flows.gate())
    question = client.runs.wait(client.runs.start("gate")["runId"])
    with Proxy(host.url, SWALLOW) as proxy, Client(proxy.url, host.key) as away:
        away.interrupts.approve(question)
        assert len(proxy.requests) == 2


def test_a_busy_host_is_asked_again_later(host: Host) -> None:
    busy = Say("503 Service Unavailable", {"retry-after": "0"}, b'{"error":"overloaded","message":"later"}')
    with Proxy(host.url, busy, busy) as proxy, Client(proxy.url, host.key) as client:
        assert client.host.ready()
        assert len(proxy.requests) == 3
        proxy.plan = [Say("503 Service Unavailable", {"retry-after": "3600"}, busy.body)]
        with pytest.raises(Unavailable) as caught:
            client.host.ready()
        assert caught.value.retry_after == 3600 and len(proxy.requests) == 4


def test_a_host_that_does_not_answer(host: Host) -> None:
    with (
        Proxy(host.url, STALL, Hold(150)) as proxy,
        Client(proxy.url, host.key, options=Options(timeout=0.3)) as client,
    ):
        for _ in range(2):
            with pytest.raises(ConnectionFailed):
                client.host.discover()
        assert len(proxy.requests) == 2


def test_streams_go_on_over_cut_and_silent_connections(host: Host, client: Client) -> None:
    client.workflows.register(flows.ticks(30, 5))
    run = client.runs.start("ticks")["runId"]
    client.runs.wait(run, until="ended")
    whole = list(client.runs.events(run, mode="debug"))
    cuts: list[Plan] = [Cut(900), Cut(2500), Hold(1500), Cut(10), Say("502 Bad Gateway"), Cut(4000), Hold(3000)]
    with Proxy(host.url, *cuts) as proxy, Client(proxy.url, host.key, options=Options(silence=0.5)) as away:
        assert list(away.runs.events(run, mode="debug")) == whole
        assert len(proxy.requests) == len(cuts) + 1
    batched = list(client.runs.events(run, mode="debug", buffer_ms=50))
    assert batched == whole


def test_thousands_of_events_over_cut_connections(host: Host, client: Client) -> None:
    client.workflows.register(flows.ticks(1000, 0))
    run = client.runs.start("ticks")["runId"]
    cuts = [Cut(size) for size in (100_000, 333_333, 65_536)]
    with Proxy(host.url, *cuts) as proxy, Client(proxy.url, host.key) as away:
        events = list(away.runs.events(run, mode="debug"))
        assert sequences(events) == list(range(len(events))) and len(events) > 8000
        assert len(proxy.requests) == len(cuts) + 1


def test_a_stream_outlives_the_host() -> None:
    host = Host()
    try:
        with Client(host.url, host.key) as client:
            client.workflows.register(flows.ticks(40, 40))
            run = client.runs.start("ticks")["runId"]
            seen: list[Any] = []
            enough = threading.Event()
            waited: list[Any] = []

            def read() -> None:
                for event in client.runs.events(run, mode="debug"):
                    seen.append(event)
                    if len(seen) == 20:
                        enough.set()

            threads = [
                threading.Thread(target=read),
                threading.Thread(target=lambda: waited.append(client.runs.wait(run))),
            ]
            for thread in threads:
                thread.start()
            assert enough.wait(30)
            host.kill()
            host.run()
            for thread in threads:
                thread.join(60)
            assert sequences(seen) == list(range(len(seen))), "a gap or a double"
            assert seen[-1]["type"] == "run.completed" and waited[0]["outputs"] == {"last": 39}
            assert sequences(client.runs.poll(run, limit=10_000)["events"]) == sequences(seen)
    finally:
        host.stop()


def test_the_same_without_blocking(host: Host) -> None:
    async def scenario() -> None:
        async with AsyncClient(host.url, host.key) as client:
            await client.workflows.register(flows.gate())
            runs = await asyncio.gather(
                *(client.runs.start("gate", idempotency_key=f"async-{n % 20}") for n in range(40))
            )
            ids = {run["runId"] for run in runs}
            assert len(ids) == 20
            waiting = await asyncio.gather(*(client.runs.wait(run) for run in ids))
            await asyncio.gather(*(client.interrupts.approve(run) for run in waiting))
            for run in list(ids)[:3]:
                events = [event async for event in client.runs.events(run, mode="debug")]
                assert sequences(events) == list(range(len(events))) and events[-1]["type"] == "run.completed"
            with pytest.raises(AlreadyAnswered):
                await client.interrupts.approve(waiting[0])
            listed = [item["runId"] async for item in client.runs.list(workflow_id="gate", page_size=9)]
            assert ids <= set(listed)

    asyncio.run(scenario())


def test_of_five_clicks_at_once_one_counts(host: Host) -> None:
    async def scenario() -> None:
        async with AsyncClient(host.url, host.key) as client:
            await client.workflows.register(flows.gate())
            for _ in range(5):
                question = await client.runs.wait((await client.runs.start("gate"))["runId"])
                clicks = [client.interrupts.approve(question) for _ in range(5)]
                got = await asyncio.gather(*clicks, return_exceptions=True)
                assert sorted(type(one).__name__ for one in got) == ["AlreadyAnswered"] * 4 + ["dict"]

    asyncio.run(scenario())


def test_a_cancelled_task_leaves_no_connection(host: Host) -> None:
    async def scenario() -> None:
        async with AsyncClient(host.url, host.key) as client:
            await client.workflows.register(flows.gate())
            run = (await client.runs.start("gate"))["runId"]
            began = asyncio.Event()

            async def read() -> None:
                async for _ in client.runs.events(run, mode="debug"):
                    began.set()

            task = asyncio.create_task(read())
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await client.runs.cancel(run))["status"] in ("cancelling", "cancelled")

    asyncio.run(scenario())
