"""``extract_pdf``: the formats of its results, and the files that they go to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pdfpool_django import runtime
from scripts.pdf_builder import simple_pdf
from tests.site.commands import run, write
from tests.site.helpers import SAMPLE, TEXTS

# Formats


def test_json_is_one_array_with_an_object_per_file(folder: Path) -> None:
    paths = [write(folder, "a.pdf", SAMPLE), folder / "none.pdf", write(folder, "b.pdf")]
    answer = run(*paths, "--format", "json")
    first, failed, second = json.loads(answer.out)
    assert first["path"] == str(paths[0])
    assert [page["text"].strip() for page in first["pages"]] == list(TEXTS)
    assert (first["complete"], first["version"]) == (True, 1)
    assert failed == {
        "path": str(paths[1]),
        "error": {"code": "unreadable", "detail": "There is no such file; check its path."},
    }
    assert second["pages"][0]["text"].strip() == "text of b.pdf"
    assert answer.status == 1


def test_json_of_no_file_is_an_empty_array(folder: Path) -> None:
    assert json.loads(run(folder, "--recursive", "--format", "json").out) == []


def test_ndjson_is_a_line_per_event(folder: Path) -> None:
    paths = [write(folder, "a.pdf", SAMPLE), write(folder, "bad.pdf", b"Dear Sir")]
    answer = run(*paths, "--format", "ndjson", "--pages", "1,3")
    events = [json.loads(line) for line in answer.out.splitlines()]
    assert [event["type"] for event in events] == ["document", "page", "page", "end", "error"]
    assert [event["path"] for event in events] == [str(paths[0])] * 4 + [str(paths[1])]
    document, first, third, end, error = events
    assert (document["page_count"], document["metadata"]) == (3, {"title": "Three"})
    assert [first["number"], third["number"]] == [1, 3]
    assert third["text"].strip() == TEXTS[2]
    assert end["complete"] is True
    assert "pages" not in end
    assert error["error"]["code"] == "not_a_pdf"


def test_text_outside_ascii_is_written_as_it_is(folder: Path) -> None:
    path = write(folder, "a.pdf", simple_pdf("Größe"))
    assert "Größe" in run(path).out
    assert "Größe" in run(path, "--format", "json").out


# Files of results


def test_each_result_goes_to_a_file_named_after_its_document(folder: Path) -> None:
    output = folder.parent / "made" / "if missing"
    paths = [write(folder, "a.pdf", SAMPLE), write(folder, "b.v2.pdf")]
    answer = run(*paths, "--output", output)
    assert (answer.status, answer.out) == (0, "")
    assert names(output) == ["a.txt", "b.v2.txt"]
    assert (output / "a.txt").read_text().split("\f")[2].strip() == TEXTS[2]


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_results_of_the_same_name_do_not_meet(folder: Path) -> None:
    given = ["x/a.pdf", "y/a.pdf", "z/a-2.pdf", "a.PDF"]
    output = folder.parent / "out"
    run(*(write(folder, name) for name in given), "--output", output)
    texts = {path.name: path.read_text().strip() for path in output.iterdir()}
    assert len(texts) == 4
    assert sorted(texts.values()) == sorted(f"text of {name}" for name in given)
    assert texts["a.txt"] == "text of x/a.pdf"


def test_a_folders_results_keep_their_places(folder: Path) -> None:
    for name in ("b/a.pdf", "a.pdf"):
        write(folder, name)
    output = folder.parent / "out"
    run(folder, "--recursive", "--output", output)
    assert names(output) == ["a.txt", "b/a.txt"]


@pytest.mark.parametrize(("form", "ending"), [("json", ".json"), ("ndjson", ".ndjson")])
def test_results_in_files_have_their_formats_ending(folder: Path, form: str, ending: str) -> None:
    output = folder.parent / "out"
    path = write(folder, "a.pdf", SAMPLE)
    run(path, "--output", output, "--format", form)
    (written,) = output.iterdir()
    assert written.name == f"a{ending}"
    found = [json.loads(line) for line in written.read_text().splitlines()]
    assert {each["path"] for each in found} == {str(path)}
    assert len(found) == (1 if form == "json" else 5)


def test_a_file_that_fails_leaves_no_result(folder: Path) -> None:
    output = folder.parent / "out"
    answer = run(write(folder, "bad.pdf", b"%PDF-"), write(folder, "a.pdf"), "--output", output)
    assert answer.status == 1
    assert names(output) == ["a.txt"]


def test_an_output_folder_that_cannot_be_made_is_told_before_anything_is_read(
    folder: Path,
) -> None:
    output = folder.parent / "out"
    output.write_text("a file")
    before = runtime.state().details["jobs_started"]
    answer = run(write(folder, "a.pdf"), "--output", output)
    assert answer.status == 1
    assert answer.message == f"--output: {output} cannot be written: File exists."
    assert runtime.state().details["jobs_started"] == before


def test_a_result_that_cannot_be_written_is_told(folder: Path) -> None:
    output = folder.parent / "out"
    (output / "a.txt").mkdir(parents=True)
    answer = run(write(folder, "a.pdf"), "--output", output)
    assert answer.status == 1
    assert answer.message == f"--output: {output / 'a.txt'} cannot be written: Is a directory."
