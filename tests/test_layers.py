"""The design's layers: imports go down only, and the two sides never import each other's half."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pdfpool_django"

LAYERS = {
    0: {"access", "errors", "model", "mutex", "outcomes", "pool", "sandbox", "text", "tickets"},
    1: {"engines"},
    2: {"backends", "documents"},
    3: {"conf", "extraction", "runtime", "signals", "sources"},
    4: {"callers", "forms", "http", "streaming", "uploads"},
    5: {"apps", "async_urls", "async_views", "checks", "management", "testing", "urls", "views"},
}
DJANGO_FROM = 3
LAYER_OF = {module: layer for layer, modules in LAYERS.items() for module in modules}

# What besides the standard library and Django a layer may name.
LIBRARIES = {"async_views": {"asgiref"}, "engines": {"pypdf"}, "management": {"tqdm"}}
# Layer 0 has an order of its own: these know nothing of the others.
STANDALONE = {
    "pool": {"mutex", "outcomes", "tickets", "pool"},
    "sandbox": {"errors", "sandbox"},
}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def top_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[str]:
    """Yield the full names that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer"
            if node.module == "pdfpool_django":
                yield from (f"pdfpool_django.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def own_imports(path: Path) -> set[str]:
    names = (name.split(".") for name in imports(path))
    return {name[1] for name in names if name[0] == "pdfpool_django" and len(name) > 1}


def foreign_imports(path: Path) -> set[str]:
    tops = {name.split(".")[0] for name in imports(path)}
    return tops - sys.stdlib_module_names - {"pdfpool_django", "__future__"}


def test_every_module_has_a_layer() -> None:
    assert {top_of(path) for path in modules()} == set(LAYER_OF)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    own = LAYER_OF[top_of(path)]
    for name in own_imports(path):
        assert LAYER_OF[name] <= own, f"{path.name} imports {name}, which is above it"
        # An engine lives in a child; nobody above it may import one.
        assert name != "engines" or own == 1, f"{path.name} imports an engine"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_foreign_imports_are_the_layers(path: Path) -> None:
    allowed = {"django"} if LAYER_OF[top_of(path)] >= DJANGO_FROM else set()
    allowed |= LIBRARIES.get(top_of(path), set())
    assert foreign_imports(path) <= allowed


@pytest.mark.parametrize("module", STANDALONE)
def test_primitives_know_nothing_of_each_other(module: str) -> None:
    for path in modules():
        if top_of(path) == module:
            assert own_imports(path) <= STANDALONE[module]


def test_only_conf_reads_the_settings() -> None:
    readers = {top_of(path) for path in modules() if "django.conf" in set(imports(path))}
    assert readers == {"conf"}


def test_only_http_knows_status_codes() -> None:
    for path in modules():
        if top_of(path) in {"http", "views"}:  # `health` has a code of its own, 503
            continue
        numbers = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and type(node.value) is int
        }
        assert not numbers & {401, 403, 413, 415, 422, 429, 503}, path


def loaded_after(code: str) -> set[str]:
    """Return the top-level modules of a fresh interpreter that has run `code`."""
    script = f"{code}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(result.stdout.splitlines()[-1].split())


def test_a_child_never_imports_django() -> None:
    child = (
        "import pdfpool_django.engines.pypdf as adapter, pdfpool_django.sandbox.launcher\n"
        "adapter.engine.warm(); adapter.engine.rehearse()"
    )
    loaded = loaded_after(child)
    assert "pypdf" in loaded
    assert "django" not in loaded


@pytest.mark.parametrize("images", [False, True])
def test_text_never_imports_what_only_images_need(images: bool) -> None:
    program = (
        "import sys\n"
        "from pdfpool_django.sandbox.launcher import _import_engine\n"
        f"_import_engine('pdfpool_django.engines.pypdf', images={images})\n"
        "assert 'PIL' in sys.modules\n"
        f"assert ('PIL.Image' in sys.modules) == {images}"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_web_process_never_imports_an_engine() -> None:
    web = (
        "import os, django\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'example_project.settings'\n"
        "django.setup()\n"
        "import pdfpool_django.urls\n"
        "from pdfpool_django.extraction import extract\n"
        "assert extract('example_project/samples/invoice.pdf', caller='test').complete"
    )
    loaded = loaded_after(web)
    assert "django" in loaded
    assert "pypdf" not in loaded


def test_importing_starts_nothing() -> None:
    code = (
        "import os, threading, django\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'example_project.settings'\n"
        "django.setup()\n"
        "import pdfpool_django.urls, pdfpool_django.runtime\n"
        "assert threading.active_count() == 1\n"
        "children = open(f'/proc/self/task/{os.getpid()}/children').read()\n"
        "assert not children.strip(), children"
    )
    loaded_after(code)
