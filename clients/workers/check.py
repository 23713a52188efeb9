"""Called by the script beside it, in a copy of examples/own-code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATON = os.environ["BATON_BIN"]
DEADLINE = 60.0
SLOW = '''
import os, sys, time
from mcp.server import MCPServer

server = MCPServer("slow")


@server.tool()
def slow(n: int) -> int:
    """Notes that it was called, and takes its time."""
    with open("slow.calls", "a") as calls:
        calls.write(f"{os.getpid()}\\n")
    while not os.path.exists("slow.go"):
        time.sleep(0.05)
    return n + 1


server.run(transport="stdio")
'''


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
    def __init__(self) -> None:
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        words = [BATON, "dev", "--config", "baton.toml", "--packs", "packs", "--listen", self.address]
        self.log = Path("host.log").open("a+")
        self.process = subprocess.Popen(words, stdout=self.log, stderr=self.log)
        until("the host listens", lambda: "listening on http://" in Path("host.log").read_text())
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


def team(own: Any) -> None:
    """The agent, the graph and the Node server, each as a step with an approval, and all three as tools of an agent."""
    count, approve, shout = own["nodes"]

    def step(id: str, tool: str, arguments: Any, into: str) -> Any:
        return {**count, "id": id, "config": {"tool": tool, "arguments": arguments, "into": into}}

    ask = step("ask", "runner:frameworks.ask", {"question": "How much tea?"}, "told")
    measure = step("measure", "runner:frameworks.measure", {"text": "two cups of it"}, "words")
    edges = [("ask", "approve"), ("approve", "measure"), ("measure", "shout")]
    write(
        "workflows/team.json",
        {
            **own,
            "id": "team",
            "nodes": [ask, approve, measure, shout],
            "edges": [{"id": f"{a}-{b}", "sourceNodeId": a, "targetNodeId": b} for a, b in edges],
            "variables": own["variables"] + [{"name": "told", "type": "object"}],
        },
    )
    tools = ["runner:frameworks.ask", "runner:frameworks.measure", "runner:js.shout"]
    arguments = [{"question": "How much?"}, {"text": "a b c"}, {"text": "done"}]
    rules = [
        {"when": {"system": "You work", "call": n + 1}, "reply": {"tools": [{"name": tool, "arguments": given}]}}
        for n, (tool, given) in enumerate(zip(tools, arguments))
    ]
    write("script.json", {"rules": [*rules, {"when": {"system": "You work"}, "reply": {"text": "done"}}]})
    worker = {"agentId": "private.own.code.worker", "persona": "Worker", "modelClass": "general"}
    write(
        "packs/private.own.code/pack.json",
        {
            "name": "private.own.code",
            "version": "1.0.0",
            "engines": {"openwop": ">=1.0.0 <2.0.0"},
            "runtime": {"language": "remote", "entry": "pack.json"},
            "agents": [{**worker, "systemPrompt": "You work.", "toolAllowlist": tools}],
        },
    )


def main() -> None:
    Path("slow.py").write_text(SLOW)
    config = Path("baton.toml")
    config.write_text(
        config.read_text()
        + '\n[workers.frameworks]\ncommand = ["python3", "frameworks.py"]\n'
        + '[providers.script]\nkind = "scripted"\nscript = "script.json"\n[models]\ndefault = "script/x"\n'
        + '\n[workers.slow]\ncommand = ["python3", "slow.py"]\n[runners.slow.tools]\nslow = { tier = "pure" }\n'
    )
    own = json.loads(Path("workflows/own-code.json").read_text())
    slow = {**own, "id": "slow", "nodes": [dict(own["nodes"][0])], "edges": []}
    slow["nodes"][0]["config"] = {"tool": "runner:slow.slow", "arguments": {"n": 1}, "into": "words"}
    Path("workflows/slow.json").write_text(json.dumps(slow))
    team(own)
    host = Host()
    try:
        # Started at once: whatever is not connected yet is waited for.
        run = start("own-code")
        reaches(run, "waiting-approval")
        assert baton("interrupt", "resolve", run, "--accept") is not None
        view = reaches(run, "completed")
        assert view["variables"]["words"] == {"result": 4}, view["variables"]
        assert view["variables"]["loud"] == "ALL THAT I CAN!", view["variables"]
        said = Path("host.log").read_text()
        assert "py | the Python worker is up" in said and "js | the Node worker is up" in said, said

        run = start("team")
        reaches(run, "waiting-approval")
        assert baton("interrupt", "resolve", run, "--accept") is not None
        view = reaches(run, "completed")
        assert view["variables"]["told"] == {"result": "two cups, if it is cold"}, view["variables"]
        assert view["variables"]["words"] == {"result": 4}, view["variables"]
        run = str(baton("agent", "run", "private.own.code.worker", "--task", "x")["runId"])
        reaches(run, "completed")
        assert returned(run) == 3, "all three as tools of an agent"

        # The program, the host or both are killed in the middle of a call: the tool may be called again, one answer counts.
        for round in range(int(os.environ.get("BATON_KILLS", "3"))):
            Path("slow.go").unlink(missing_ok=True)
            before = len(calls())
            run = start("slow")
            pid = int(until("the call is made", lambda: calls()[before:])[0])
            if round % 3 != 1:
                os.kill(pid, signal.SIGKILL)
            if round % 3 == 0:
                until("the call is made again", lambda: len(calls()) == before + 2)
            else:
                host.kill()
                host.start()
            Path("slow.go").touch()
            reaches(run, "completed")
            assert returned(run) == 1, "one answer counts"

        # A program that is changed is started again.
        worker = Path("worker.py")
        worker.write_text(worker.read_text().replace('text.upper() + "!"', 'text.upper() + "?"').replace("is up", "is new"))
        until("the program is read again", lambda: "py | the Python worker is new" in Path("host.log").read_text())
        run = start("own-code")
        reaches(run, "waiting-approval")
        host.stop()
    except BaseException:
        host.kill()
        raise
    print("own code in Python and JavaScript: as the guide says")


def calls() -> list[str]:
    return Path("slow.calls").read_text().split() if Path("slow.calls").exists() else []


if __name__ == "__main__":
    main()
