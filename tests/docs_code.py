"""The code in our documents: taken out of a page, so that tests can run it.

    BLOCKS = code_blocks(ROOT / "docs" / "testing.md")

    @pytest.mark.parametrize("block", BLOCKS, ids=str)
    def test_its_code_runs(block: CodeBlock) -> None:
        run_code(block, {"client": ...})

Only fenced blocks with a language are found; `code_blocks` takes another
language than Python, too. A block's first line may be a comment that names its
file, like ``# urls.py``: that is the block's `file`. Blocks that are tests
themselves go to `run_tests`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.\w+)$", re.MULTILINE)
_TEST = re.compile(r"^\s*(?:async )?def (test_\w+)\(", re.MULTILINE)
_PASSED = re.compile(r"^PASSED .*::(test_\w+)", re.MULTILINE)

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block of a page."""

    page: Path
    line: int
    """The page's line on which its first line of code stands."""
    source: str

    @property
    def file(self) -> str | None:
        """The file that its first line says it belongs to."""
        found = _FILE.match(self.source)
        return None if found is None else found[1]

    @property
    def tests(self) -> set[str]:
        """The tests that it defines, by name."""
        return set(_TEST.findall(self.source))

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def code_blocks(page: Path, language: str = "python") -> list[CodeBlock]:
    """Return the blocks of one language, in the page's order."""
    text = page.read_text(encoding="utf-8")
    return [
        CodeBlock(page, text.count("\n", 0, found.start("source")) + 1, found["source"])
        for found in _BLOCK.finditer(text)
        if found["language"] == language
    ]


def run_code(block: CodeBlock, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a block, and return the names that it has then; a traceback shows the page's lines.

    Args:
        block: The block.
        names: What it may use besides what it imports and defines.
    """
    source = "\n" * (block.line - 1) + block.source
    namespace = {"__name__": f"block_at_line_{block.line}", **(names or {})}
    exec(compile(source, str(block.page), "exec"), namespace)
    return namespace


def run_tests(blocks: Iterable[CodeBlock], folder: Path) -> set[str]:
    """Run blocks that define tests, each as a module of its own, under this project's settings.

    Args:
        blocks: The blocks.
        folder: An empty one, for the modules.

    Returns:
        The names of those that passed. One that does not fails the caller.
    """
    for block in blocks:
        module = folder / f"test_{block.page.stem}_{block.line}.py"
        module.write_text(block.source, encoding="utf-8")
    options = ("-q", "-rA", "-p", "no:cacheprovider", "--rootdir", str(folder))
    config = ("-c", str(ROOT / "pyproject.toml"), "-o", f"pythonpath={ROOT}")
    command = [sys.executable, "-m", "pytest", *options, *config, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return set(_PASSED.findall(done.stdout))
