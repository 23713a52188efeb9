"""Every Python example of docs/guide/client-libraries.md, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from host import DEADLINE, REPOSITORY, Host

PAGE = (REPOSITORY / "docs/guide/client-libraries.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(host: Host, tmp_path: Path, number: int) -> None:
    program = tmp_path / "example.py"
    program.write_text(EXAMPLES[number])
    environment = {**os.environ, "BATON_URL": host.url, "BATON_API_KEY": host.key}
    done = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == 0, done.stderr
    # What an example says that it prints.
    for said in re.findall(r"print\(.*\)  # (.*)$", EXAMPLES[number], re.MULTILINE):
        assert said in done.stdout.splitlines()


def test_examples_have_the_right_types(tmp_path: Path) -> None:
    assert len(EXAMPLES) >= 6
    for number, example in enumerate(EXAMPLES):
        (tmp_path / f"example_{number}.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", tmp_path], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout


def test_each_method_is_on_the_page() -> None:
    from baton_client import client as clients

    groups = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.split("## Methods")[1].split("##")[0], re.MULTILINE)
    assert len(groups) == 8
    with clients.Client("http://127.0.0.1:9", "k") as client:
        for group, methods in groups:
            named = re.findall(r"`(\w+)`", methods)
            assert named == [name for name in vars(type(getattr(client, group))) if not name.startswith("_")], group
