"""Hands the page of a fleet to the command: `acltape fleet report DIR -o FILE` runs this (page/fleet_page.h).

Prints lines of JSON: {"json": the name of a part of the page, "value"} and {"column": a name, "values": whole numbers}.
"""
import os
import urllib.parse

from acltape.fleet import lines, matrix, questions
from acltape.fleet.folder import FolderError

# Reports begin with it (page/web/page.html).
_TITLE = b"<title>acltape report</title>"
_MOST_HEAD = 1 << 14


def refuse(fleet, page):
    """Raises FolderError if the page would replace a trace of the fleet, or what the folder holds."""
    place = os.path.realpath(page)
    folder = os.path.realpath(fleet.folder.path)
    own = [os.path.join(folder, name) for name in ("manifest", "data", "acltape_fleet.json")]
    if any(place == name or place.startswith(name + os.sep) for name in own):
        raise FolderError(f"'{page}' is a file of the fleet itself; name another place for the page")
    if os.path.exists(page) and any(part.trace and os.path.realpath(part.trace) == place
                                    for part in fleet.folder.parts):
        raise FolderError(f"'{page}' is a trace of the fleet; name another place for the page")


def say(fleet, page, told):
    """Prints all parts of the page. told: the answers of the prepared questions."""
    of_runs = matrix.runs(fleet)
    said = {run.name: _facts_of(run, os.path.dirname(os.path.abspath(page))) for run in of_runs}
    for figure in matrix.figures(fleet, of_runs):
        number = of_runs.index(figure.run)
        said[figure.run.name]["figures"][figure.name] = {
            "unit": figure.unit, "sums": figure.sums, "known": any(total is not None for total in figure.sums)}
        lines.say(column=f"{number}.{figure.name}.figure", values=figure.values)
    lines.say(json="fleet", value={
        "title": os.path.basename(fleet.folder.path), "folder": fleet.folder.path,
        "left_out": fleet.folder.left_out, "lacking": fleet.folder.lacking(),
        "answers": [_answer(row) for row in told], "runs": list(said.values())})


def _answer(row):
    question = questions.ALL[row.name]
    kind = "none" if row.answer == question.none else "unknown" if row.answer.startswith("Not known") else "finding"
    return {"name": row.name, "question": row.question, "answer": row.answer, "kind": kind, "next": row.next}


def _facts_of(run, place):
    parts = run.parts
    return {"name": run.name, "steps": run.steps, "each": run.each, "ranks": [part.rank for part in parts],
            "labels": [part.label or "" for part in parts], "hosts": [part.host or "" for part in parts],
            "traces": [part.trace or "" for part in parts], "recorded": [part.recorded or "" for part in parts],
            "lacks": [len(part.lacks) for part in parts], "reports": [_report_of(part.trace, place) for part in parts],
            "figures": {}}


def _report_of(trace, place):
    """The address of a trace's own report as seen from the page, empty where there is none.

    Manifests are texts of others: a file is named only if it is a report.
    """
    if not trace or not os.path.isabs(trace):
        return ""
    report = os.path.splitext(trace)[0] + ".html"
    if not os.path.isfile(report):
        return ""
    try:
        with open(report, "rb") as file:
            if _TITLE not in file.read(_MOST_HEAD):
                return ""
    except (OSError, ValueError):
        return ""
    return "./" + urllib.parse.quote(os.path.relpath(report, place))
