"""Whether modules could be imported, found out without importing one of them.

The web process never imports an engine's library, and what a package imports when it is itself
imported is unknown: so the finders are asked level by level, where `importlib.util.find_spec` would
import each parent.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec


def find(name: str) -> ModuleSpec | None:
    """Return the specification of a module; ``None`` where there is no such module.

    Raises:
        LookupError: It is inside nested namespace packages, whose places are
            known only once their parents are imported.
    """
    path = None
    spec = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        if spec is not None and path is None:
            return None  # what is inside a module that is no package
        spec = _ask_finders(".".join(parts[:count]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return spec


def _ask_finders(name: str, path: list[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path)
        if spec is not None:
            return spec
    return None


def missing_imports(spec: ModuleSpec) -> list[str]:
    """Return the packages that a module imports at its top, and that are not installed."""
    return sorted({name for name in _top_imports(spec) if find(name) is None})


def _top_imports(spec: ModuleSpec) -> Iterator[str]:
    """Yield the packages that a module imports without condition, by its source."""
    for node in ast.parse(_source(spec)).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _source(spec: ModuleSpec) -> str:
    """Return a module's source, empty where it has none."""
    get_source = getattr(spec.loader, "get_source", None)
    return (get_source and get_source(spec.name)) or ""
