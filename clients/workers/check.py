"""Called by the script beside it, in a copy of examples/own-code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATON = os.environ["BATON_BIN"]
DEADLINE = 60.0
GUIDE = Path(os.environ.get("BATON_GUIDE", "../docs/guide"))
# Programs of four kinds, each with a tool that notes its calls in NAME.calls, each with the key of the call, and waits for
# NAME.go. Which name, the command says.
HOLD = '''
import asyncio, os, sys
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

NAME = sys.argv[1]
server = MCPServer(NAME)


async def hold(ctx):
    meta = ctx.request_context.meta
    meta = meta if isinstance(meta, dict) else meta.model_dump()
    with open(NAME + ".calls", "a") as calls:
        calls.write(f"{os.getpid()} {meta['io.baton/idempotencyKey']}\\n")
    while not os.path.exists(NAME + ".go"):
        await asyncio.sleep(0.02)
'''
PROGRAMS = {
    "plain.py": '''
from hold import *


@server.tool()
async def slow(n: int, ctx: Context) -> int:
    await hold(ctx)
    return n + 1


server.run(transport="stdio")
''',
    "agent.py": '''
from hold import *
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel(custom_output_text="two"), deps_type=object)


@agent.tool
async def look(run) -> int:
    await hold(run.deps)
    return 1


@server.tool()
async def slow(n: int, ctx: Context) -> int:
    return n + len((await agent.run("How much?", deps=ctx)).output) // 3


server.run(transport="stdio")
''',
    "graph.py": '''
from hold import *
from typing import Any, TypedDict
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int
    ctx: Any


async def count(state: State):
    await hold(state["ctx"])
    return {"n": state["n"] + 1}


graph = StateGraph(State).add_node("count", count).add_edge(START, "count").add_edge("count", END).compile()


@server.tool()
async def slow(n: int, ctx: Context) -> int:
    return (await graph.ainvoke({"n": n, "ctx": ctx}))["n"]


server.run(transport="stdio")
''',
    "node.mjs": '''
import { appendFileSync, existsSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const name = process.argv[2];
const server = new McpServer({ name, version: "1.0.0" });
server.registerTool("slow", { inputSchema: z.object({ n: z.number() }) }, async ({ n }, ctx) => {
  const meta = ctx?.mcpReq?._meta ?? ctx?._meta ?? {};
  appendFileSync(`${name}.calls`, `${process.pid} ${meta["io.baton/idempotencyKey"]}\n`);
  while (!existsSync(`${name}.go`)) await new Promise((done) => setTimeout(done, 20));
  return { content: [], structuredContent: { result: n + 1 } };
});
await server.connect(new StdioServerTransport());
''',
}
KINDS = ["plain.py", "agent.py", "graph.py", "node.mjs"]


def until(what: str, ask: Callable[[], Any]) -> Any:
    end = time.monotonic() + DEADLINE
    while True:
        if got := ask():
            return got
        if time.monotonic() > end:
            sys.exit(f"it did not come to this: {what}\n{Path('host.log').read_text()}")
        time.sleep(0.05)


def baton(*words: str) -> Any:
    done = subprocess.run([BATON, *words, "--json"], capture_output=True, text=True, timeout=DEADLINE)
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None


class Host:
    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        self.log = Path("host.log").open("a+")
        before = Path("host.log").read_text().count("listening on http://")
        words = [BATON, *self.words, "--listen", self.address]
        self.process = subprocess.Popen(words, stdout=self.log, stderr=self.log)
        until("the host listens", lambda: Path("host.log").read_text().count("listening on http://") > before)
        line = [line for line in Path("host.log").read_text().splitlines() if line.startswith("listening on ")][-1]
        self.address = line.split("http://")[1].split()[0]
        until("the host answers", lambda: baton("runner-token", "list"))

    def kill(self) -> None:
        """As a crash would. Its programs end by themselves."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=DEADLINE) != 0:
            sys.exit(f"the host ended with {self.process.returncode}")


def show(run: str) -> Any:
    return baton("run", "show", run)


def reaches(run: str, status: str) -> Any:
    def ask() -> Any:
        view = show(run)
        if view and view["status"] == "failed" and status != "failed":
            sys.exit(f"{run} failed: {view.get('error')}")
        return view if view and view["status"] == status else None

    return until(f"{run} is {status}", ask)


def start(workflow: str) -> str:
    return str(until(f"{workflow} starts", lambda: baton("run", "start", workflow))["runId"])


def returned(run: str) -> int:
    listed = subprocess.run([BATON, "run", "events", run, "--json"], capture_output=True, text=True, timeout=DEADLINE)
    return sum(json.loads(line)["type"] == "agent.toolReturned" for line in listed.stdout.splitlines())


def write(path: str, value: Any) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(value))


def command(name: str, program: str) -> list[str]:
    return [{"py": "python3", "mjs": "node"}[program.split(".")[1]], program, name]


def workflow(id: str, pool: str, **config: Any) -> Any:
    """One step, which calls the slow tool of a pool."""
    own = json.loads(Path("workflows/own-code.json").read_text())
    step = dict(own["nodes"][0])
    step["config"] = {"tool": f"runner:{pool}.slow", "arguments": {"n": 1}, "into": "words", **config}
    return {**own, "id": id, "nodes": [step], "edges": []}


def calls(name: str) -> list[tuple[int, str]]:
    """The process and the key of each call."""
    noted = Path(f"{name}.calls")
    lines = noted.read_text().splitlines() if noted.exists() else []
    return [(int(line.split()[0]), line.split()[1]) for line in lines]


def hold(name: str) -> None:
    Path(f"{name}.go").unlink(missing_ok=True)


def go(name: str) -> None:
    Path(f"{name}.go").touch()


def examples() -> None:
    """What the example's page says."""
    run = start("own-code")
    reaches(run, "waiting-approval")
    assert baton("interrupt", "resolve", run, "--accept") is not None
    view = reaches(run, "completed")
    assert view["variables"]["words"] == {"result": 4}, view["variables"]
    assert view["variables"]["loud"] == "ALL THAT I CAN!", view["variables"]
    said = Path("host.log").read_text()
    assert "py | the Python worker is up" in said and "js | the Node worker is up" in said, said
    assert start_again(run) == 0, "a replay asks nobody"

    run = start("own-team")
    reaches(run, "waiting-approval")
    assert baton("interrupt", "resolve", run, "--accept") is not None
    view = reaches(run, "completed")
    assert view["variables"]["told"] == {"result": "two cups, if it is cold"}, view["variables"]
    assert view["variables"]["words"] == {"result": 6}, view["variables"]
    assert view["variables"]["loud"] == "TWO CUPS, IF IT IS COLD!!!", view["variables"]
    run = str(baton("agent", "run", "private.own.code.worker", "--task", "tea")["runId"])
    reaches(run, "completed")
    assert returned(run) == 3, "all three as tools of an agent"


def start_again(run: str) -> int:
    """A replay of a run: how many calls it made."""
    before = sum(len(calls(name)) for name in names())
    done = subprocess.run([BATON, "run", "fork", run, "--replay", "--wait"], capture_output=True, timeout=DEADLINE)
    assert done.returncode == 0, done
    return sum(len(calls(name)) for name in names()) - before


def names() -> list[str]:
    return [program.split(".")[0] for program in KINDS] + ["asking", "failing"]


def killed(host: Host, kinds: list[str], program: bool, whole_host: bool) -> Callable[[], None]:
    """In the middle of calls their programs, the host or both are killed. Says how to wait for what becomes of it: a call may
    be made again, and one answer counts."""
    before = {name: len(calls(name)) for name in kinds}
    runs = {}
    for name in kinds:
        hold(name)
        runs[name] = start(f"slow-{name}")
    for name in kinds:
        pid = until("the call is made", lambda: calls(name)[before[name] :])[0][0]
        if program:
            os.kill(pid, signal.SIGKILL)
    if whole_host:
        host.kill()
        host.start()

    def finish() -> None:
        for name, run in runs.items():
            if not whole_host:
                until("the call is made again", lambda: len(calls(name)) == before[name] + 2)
            go(name)
            view = reaches(run, "completed")
            assert view["variables"]["words"] == {"result": 2}, view["variables"]
            assert returned(run) == 1, "one answer counts"
            keys = {key for _, key in calls(name)[before[name] :]}
            assert len(keys) == 1 and next(iter(keys)).startswith(f"{run}/"), keys
            assert start_again(run) == 0, "a replay asks nobody"

    return finish


def in_doubt() -> None:
    """What becomes of a call of unknown outcome, where the operator wants a human asked, or the call to fail."""
    hold("asking")
    run = start("slow-asking")
    pid = until("the call is made", lambda: calls("asking"))[0][0]
    failing = start("slow-failing")
    other = until("the call is made", lambda: calls("failing"))[0][0]
    os.kill(pid, signal.SIGKILL)
    os.kill(other, signal.SIGKILL)
    view = reaches(failing, "failed")
    assert view["error"]["code"] == "effect_outcome_unknown", view["error"]
    reaches(run, "waiting-approval")
    assert (len(calls("asking")), len(calls("failing"))) == (1, 1), "nothing is made again unasked"
    go("asking")
    assert baton("interrupt", "resolve", run, "--value", '{"action": "retry"}') is not None
    reaches(run, "completed")
    assert len({key for _, key in calls("asking")}) == 1 and len(calls("asking")) == 2, calls("asking")


def elsewhere() -> None:
    """A host of two tenants, with runners that users start. A run waits until the worker is upgraded."""
    words = [BATON, "serve", "--listen", "127.0.0.1:0", "--data", "served"]
    keys = {"acme-key-0123456789": "acme", "rival-key-0123456789": "rival"}
    log = Path("served.log").open("w+")
    env = {**os.environ, "BATON_API_KEYS": ",".join(f"{key}:{tenant}:*" for key, tenant in keys.items())}
    children = [subprocess.Popen(words, stdout=log, stderr=log, env=env)]

    def said() -> str:
        return Path("served.log").read_text()

    try:
        until("the host listens", lambda: "listening on " in said())
        at = re.search(r"127\.0\.0\.1:\d+", said())
        assert at is not None
        for key in keys:
            write("versioned.json", workflow("versioned", "plain", runnerVersion=">=2.0.0"))
            reach = ["--url", f"http://{at[0]}", "--key", key]
            until("it is registered", lambda: baton("workflow", "register", "versioned.json", *reach))
        mine, theirs = (["--url", f"http://{at[0]}", "--key", key] for key in keys)

        def runner(reach: list[str], name: str, version: str) -> None:
            out = Path(f"{name}.log").open("w")
            words = [BATON, "runner", *reach, "--name", "plain", "--tool-version", version, "--grace", "1s", "--"]
            children.append(subprocess.Popen([*words, *command(name, "plain.py")], stdout=out, stderr=out))
            until(f"{name} is connected", lambda: "connected to" in Path(f"{name}.log").read_text())

        for name in ("old", "new", "rival"):
            go(name)
        runner(mine, "old", "1.9.0")
        runner(theirs, "rival", "2.0.0")
        run = str(baton("run", "start", "versioned", *mine)["runId"])
        until("it waits", lambda: "baton.runner.waiting" in events(run, *mine))
        runner(mine, "new", "2.0.0")
        until("it is done", lambda: baton("run", "show", run, *mine)["status"] == "completed")
        assert (len(calls("new")), calls("old"), calls("rival")) == (1, [], []), "the new one, and nobody else's"
    finally:
        for child in reversed(children):
            child.send_signal(signal.SIGTERM)
        for child in children:
            child.wait(timeout=DEADLINE)


def events(run: str, *reach: str) -> str:
    words = [BATON, "run", "events", run, "--json", *reach]
    return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE).stdout


def guide() -> None:
    """The first section of the page, in an empty folder."""
    page = (GUIDE / "own-code.md").read_text().split("\n## ")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", page, re.S)
    first = {language: text for language, text in reversed(blocks)}
    home = Path.cwd()
    in_js = first["toml"].replace("python3", "node").replace(".py", ".mjs")
    try:
        for program, toml in (("python", first["toml"]), ("js", in_js)):
            folder = home / f"empty-{program}"
            folder.mkdir()
            (folder / "node_modules").symlink_to(home / "node_modules")
            os.chdir(folder)
            write_text("worker.py" if program == "python" else "worker.mjs", first[program])
            write_text("baton.toml", toml)
            write_text("workflows/restock.json", first["json"])
            typed = [line[2:].split("#")[0].split() for line in first["console"].splitlines() if line[:2] == "$ "]
            serving, starting = typed[:2]
            host = Host(serving[1:])
            try:
                until("it starts", lambda: baton("workflow", "show", starting[3]))
                view = baton(*starting[1:])
                assert view["variables"]["stock"] == {"result": 7}, view
                host.stop()
            except BaseException:
                host.kill()
                raise
    finally:
        os.chdir(home)


def took(what: str, work: Callable[[], None]) -> None:
    began = time.monotonic()
    work()
    print(f"{what}: {time.monotonic() - began:.1f} s", flush=True)


def write_text(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def main() -> None:
    Path("hold.py").write_text(HOLD)
    config = Path("baton.toml").read_text()
    for program, name in [*zip(KINDS, names()), ("plain.py", "asking"), ("plain.py", "failing")]:
        write_text(program, PROGRAMS[program])
        policy = {"asking": 'outcome_policy = "ask"', "failing": 'outcome_policy = "fail"'}.get(name, 'tier = "pure"')
        config += f"\n[workers.{name}]\ncommand = {json.dumps(command(name, program))}\nconcurrency = 1\n"
        config += f"[runners.{name}.tools]\nslow = {{ {policy} }}\n"
        write(f"workflows/slow-{name}.json", workflow(f"slow-{name}", name))
    Path("baton.toml").write_text(config)
    host = Host(["dev", "--config", "baton.toml", "--packs", "packs"])
    try:
        took("the example", examples)
        plain, agent, graph, node = names()[:4]
        took("programs that are killed", killed(host, [plain, node], True, False))
        # What a killed host gave to a runner is lost only half a minute later: the rest is tried meanwhile.
        finish = killed(host, [agent, graph], True, True)
        took("calls in doubt", in_doubt)
        took("runners elsewhere", elsewhere)
        took("the guide", guide)
        took("a host that is killed", finish)
        for round in range(int(os.environ.get("BATON_KILLS", "4")) // 4 - 1):
            took("once more", killed(host, names()[:4], round % 3 != 1, round % 3 != 0))
        # A program that is changed is started again, while a run waits for its human.
        run = start("own-code")
        reaches(run, "waiting-approval")
        worker = Path("worker.py")
        worker.write_text(worker.read_text().replace("is up", "is new"))
        until("the program is read again", lambda: "py | the Python worker is new" in Path("host.log").read_text())
        assert baton("interrupt", "resolve", run, "--accept") is not None
        reaches(run, "completed")
        host.stop()
    except BaseException:
        host.kill()
        raise
    print("own code in Python and JavaScript: as the guide says")


if __name__ == "__main__":
    main()
