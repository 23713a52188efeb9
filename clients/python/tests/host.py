"""A real host of its own for a test, in a folder that goes with it."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx

T = TypeVar("T")

REPOSITORY = Path(__file__).resolve().parents[3]
BINARY = REPOSITORY / os.environ.get("BATON_BIN", "target/debug/baton")
DEADLINE = 30.0
"""How long anything may take before it counts as broken. Generous: the machine may be busy with other things."""


def until(what: str, ask: Callable[[], T | None]) -> T:
    end = time.monotonic() + DEADLINE
    while True:
        got = ask()
        if got:
            return got
        assert time.monotonic() < end, f"it did not come to this: {what}"
        time.sleep(0.02)


class Host:
    def __init__(self) -> None:
        assert BINARY.exists(), f"There is no {BINARY}: cargo build -p baton, or name one with BATON_BIN."
        self.folder = Path(tempfile.mkdtemp(prefix="baton-python-"))
        self.url = ""
        self.key = ""
        atexit.register(self.stop)
        self.run()

    def run(self) -> None:
        """Starts the process: on a port that it chooses, and the next time on the same one, with the same data."""
        said = (self.folder / "said").open("w+")
        listen = self.url.removeprefix("http://") or "127.0.0.1:0"
        words = [str(BINARY), "dev", "--listen", listen, "--data", str(self.folder / "data")]
        words += ["--workflows", str(self.folder / "workflows")]
        environment = {**os.environ, "NO_COLOR": "1"}
        self.process = subprocess.Popen(words, cwd=self.folder, stdout=said, stderr=said, env=environment)
        until("the host is ready", self._ready)
        note = self.folder / "data/dev.json"
        until("the host has said its key", note.exists)
        self.key = json.loads(note.read_text())["key"]

    def _ready(self) -> bool:
        said = (self.folder / "said").read_text()
        assert self.process.poll() is None, f"the host ended:\n{said}"
        if not self.url:
            self.url = next((line.split()[-1] for line in said.splitlines() if line.startswith("listening on ")), "")
        try:
            return bool(self.url) and httpx.get(f"{self.url}/readiness", trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """As a crash would: no chance to say goodbye."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.kill()
        atexit.unregister(self.stop)
        shutil.rmtree(self.folder, ignore_errors=True)
