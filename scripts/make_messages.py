"""Collect every sentence for people, and bring the translations up to date: ``make messages``.

New sentences come without a translation, to be written into
``pdfpool_django/locale/*/LC_MESSAGES/django.po``; then run it again, which compiles.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).resolve().parent.parent / "pdfpool_django"
LANGUAGES = ("de",)

# Without dates: a catalogue that has not changed is written as it was.
HEADER = """\
msgid ""
msgstr ""
"Language: {language}\\n"
"Plural-Forms: {plural}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

"""

# The pool's errors have names that ours have, too; they are translated into ours before.
_OF_NO_PERSON = ("pool.py", "tickets.py")

_TEMPLATES = ("default_template", "bare_template")
_WARNINGS = ("no_text_layer", "unmapped_text", "xfa_form")

FUNCTIONS: dict[str, tuple[int, ...] | None] = {
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "_": None,
}


def messages() -> Catalog:
    """Return every sentence of the package, with where it stands."""
    catalog = Catalog()
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name in _OF_NO_PERSON:
            continue
        place = path.relative_to(PACKAGE).as_posix()
        for line, message in (*_marked(path), *_of_errors(path), *_of_warnings(path)):
            catalog.add(message, locations=[(place, line)], flags=_flags(message))
    for path in sorted((PACKAGE / "templates").rglob("*.html")):
        place = path.relative_to(PACKAGE).as_posix()
        for line, message in _of_template(path):
            catalog.add(message, locations=[(place, line)], flags=_flags(message))
    return catalog


Message = str | tuple[str, ...]


def _flags(message: Message) -> list[str]:
    text = message if isinstance(message, str) else message[0]
    return ["python-format"] if re.search(r"%\(\w+\)", text) else []


def _marked(path: Path) -> Iterator[tuple[int, Message]]:
    """Yield what stands in a call of gettext."""
    with path.open("rb") as file:
        for line, message, _, _ in extract("python", file, keywords=FUNCTIONS):
            yield line, message


def _of_errors(path: Path) -> Iterator[tuple[int, Message]]:
    """Yield the templates of errors: they are translated where they are shown."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and _name(node.func) in _error_classes() and node.args:
            value: ast.expr | None = node.args[0]
        elif isinstance(node, ast.Call) and _name(node.func) == "error_note":
            value = node.args[1]
        elif isinstance(node, ast.Assign) and _name(node.targets[0]) in _TEMPLATES:
            value = node.value
        else:
            continue
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield node.lineno, value.value


def _of_warnings(path: Path) -> Iterator[tuple[int, Message]]:
    """Yield the sentences of warnings: they stand beside their code."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            code, sentence = (getattr(each, "value", None) for each in node.elts)
            if code in _WARNINGS and isinstance(sentence, str):
                yield node.lineno, sentence


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _error_classes() -> set[str]:
    from pdfpool_django.errors import ERROR_CLASSES

    return {cls.__name__ for cls in ERROR_CLASSES.values()}


def _of_template(path: Path) -> Iterator[tuple[int, Message]]:
    from django.utils.translation.template import templatize

    source = templatize(path.read_text(encoding="utf-8"), origin=str(path))
    file = io.BytesIO(source.encode())
    for line, message, _, _ in extract("python", file, keywords=FUNCTIONS):
        yield line, message


def catalogue_of(language: str) -> Path:
    """Return where a language's translations are."""
    return PACKAGE / "locale" / language / "LC_MESSAGES" / "django.po"


def update(language: str) -> None:
    """Bring a language's translations up to date with the sentences, and compile them."""
    path = catalogue_of(language)
    path.parent.mkdir(parents=True, exist_ok=True)
    found = messages()
    if path.exists():
        with path.open("rb") as file:
            catalog = read_po(file, locale=language)
        catalog.update(found, no_fuzzy_matching=True)
    else:
        catalog = found
        catalog.locale = language  # type: ignore[assignment]
    catalog.obsolete.clear()
    catalog.fuzzy = False
    with path.open("wb") as file:
        file.write(HEADER.format(language=language, plural=catalog.plural_forms).encode())
        write_po(file, catalog, width=100, sort_by_file=True, omit_header=True)
    with path.with_suffix(".mo").open("wb") as file:
        write_mo(file, catalog)
    missing = [each.id for each in catalog if each.id and not each.string]
    print(f"{path}: {len(catalog)} sentences, {len(missing)} without a translation")


def main() -> None:
    import django
    from django.conf import settings

    if not settings.configured:
        settings.configure(USE_I18N=True)
        django.setup()
    for language in LANGUAGES:
        update(language)


if __name__ == "__main__":
    main()
