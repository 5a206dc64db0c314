"""Every Python block of the README and of docs/ runs, and prints what its comments say."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dataflow as flow

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = re.compile(r"^\s*print\(.*\)  # (?P<text>.+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")

VERB = re.compile(r"^\| `(?P<name>\w+)(?P<arguments>\(.*?\))?` \| (?P<said>.+) \|$", re.MULTILINE)


def python_of(page: str) -> str:
    """The Python blocks of a page at the lines where they stand there; all other lines are empty."""
    lines = []
    inside = False
    for line in page.splitlines():
        if line.startswith("```"):
            inside = not inside and line.strip() == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_of_a_page_runs_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    code = python_of(page.read_text("utf-8"))
    if not code.strip():
        pytest.skip("the page has no Python")
    script = tmp_path / f"{page.stem}.py"
    script.write_text(code, "utf-8")
    work = tmp_path / "work"
    work.mkdir()
    # -P: what the page imports is what is installed, not what lies beside the script.
    command = [sys.executable, "-P", str(script)]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    printed = iter(done.stdout.splitlines())
    missing = [text for text in SHOWN.findall(code) if text not in printed]
    assert missing == [], done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_a_block_that_is_no_python_is_not_run() -> None:
    page = "text\n```python\nx = 1\n```\n```console\n$ rm\n```\n```python\nprint(x)  # 1\n```\n"
    assert python_of(page) == "\n\nx = 1\n\n\n\n\n\nprint(x)  # 1\n\n"
    assert SHOWN.findall(python_of(page)) == ["1"]


def test_the_table_of_verbs_has_every_one_with_its_arguments() -> None:
    page = (ROOT / "docs" / "verbs.md").read_text("utf-8")
    told = {found["name"]: found["arguments"] or "" for found in VERB.finditer(page)}
    public = {name: getattr(flow.Pipeline, name) for name in dir(flow.Pipeline) if not name.startswith("_")}
    verbs = {name: verb for name, verb in public.items() if callable(verb) or isinstance(verb, property)}
    assert told.keys() == verbs.keys()
    for name, verb in verbs.items():
        if isinstance(verb, property) or told[name] == "(...)":
            continue
        parameters = inspect.signature(verb).parameters
        known = [parameter for parameter in parameters if parameter not in ("self", "unknown")]
        assert _names(told[name]) == known, name


def _names(arguments: str) -> list[str]:
    # Defaults may be pairs, with a comma of their own.
    plain = re.sub(r"\([^()]*\)", "", arguments[1:-1])
    given = [one.strip() for one in plain.split(",")]
    return [one.split("=")[0].lstrip("*") for one in given if one]
