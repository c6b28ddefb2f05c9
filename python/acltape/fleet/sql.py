"""The views over fleet tables, and which tables a question reads. Their SQL is what DuckDB and Spark share."""
import os
import re
from graphlib import TopologicalSorter

from acltape.fleet.tables import TABLES

_HERE = os.path.dirname(os.path.abspath(__file__))
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Tables that the manifests tell: a row for each part that is read, and one for each thing that it lacks.
PART = {"run": "VARCHAR", "rank": "BIGINT", "world_size": "BIGINT", "label": "VARCHAR", "trace": "VARCHAR",
        "host": "VARCHAR", "program": "VARCHAR", "recorded": "VARCHAR", "exported": "VARCHAR",
        "acltape_version": "VARCHAR", "schema_version": "BIGINT"}
LACKING = {"run": "VARCHAR", "rank": "BIGINT", "sentence": "VARCHAR"}


def without_comments(text):
    return re.sub(r"--[^\n]*", "", text)


def _read(folder):
    """The text of each file of SQL in a folder, by its name."""
    texts = {}
    for name in sorted(os.listdir(os.path.join(_HERE, folder))):
        if name.endswith(".sql"):
            with open(os.path.join(_HERE, folder, name), encoding="utf-8") as file:
                texts[name[:-len(".sql")]] = file.read()
    return texts


# Other names of tables. Spark reads `FROM stream s` as a stream that is called s.
ALIASES = {"stream_row": "stream"}
# Prepared questions are views too, so that another question can ask them.
QUESTIONS = _read("questions")
VIEWS = {**_read("views"), **QUESTIONS}


def _reads(view):
    """What a view reads: names that stand where a table does."""
    text = without_comments(VIEWS[view])
    names = {ALIASES.get(name, name) for name in re.findall(r"\b(?:FROM|JOIN)\s+([a-z_]+)", text)}
    return {name for name in names if name != view and (name in VIEWS or name in TABLES)}


_READS = {name: _reads(name) for name in VIEWS}


def _named(text):
    return {ALIASES.get(word.lower(), word.lower()) for word in _WORD.findall(text)}


def readers(view, views, texts):
    """How many of these views and texts read a view themselves."""
    return sum(view in _READS[other] for other in views) + sum(view in _named(text) for text in texts)


def needed(text):
    """The views, in an order in which they can be made, and the tables that a question may read.

    A name that a question only mentions counts too: that costs time and changes no answer.
    """
    names = _named(text)
    views, tables = {}, names & TABLES.keys()
    new = names & VIEWS.keys()
    while new:
        view = new.pop()
        views[view] = _READS[view] & VIEWS.keys()
        tables |= _READS[view] & TABLES.keys()
        new |= views[view] - views.keys()
    return list(TopologicalSorter(views).static_order()), sorted(tables)


def literal(value):
    """A value as SQL; texts come from manifests."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def table_text(table, files_by_columns):
    """The SQL of a table: files with the same columns together, and NULL for those that files lack.

    files_by_columns: pairs of columns and of the SQL that reads the files.
    """
    columns = TABLES[table]
    if not files_by_columns:
        nothing = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in _typed(columns).items())
        return f"SELECT {nothing} WHERE 1 = 0"
    parts = []
    for found, source in files_by_columns:
        listed = ", ".join(name if name in found else f"CAST(NULL AS {_STRING.get(kind, kind)}) AS {name}"
                           for name, kind in columns.items())
        parts.append(f"SELECT run, rank, {listed} FROM {source}")
    return "\nUNION ALL\n".join(parts)


_STRING = {"VARCHAR": "STRING"}  # as both engines call it


def _typed(columns):
    return {name: _STRING.get(kind, kind) for name, kind in {"run": "VARCHAR", "rank": "BIGINT", **columns}.items()}


def rows_text(columns, rows):
    """The SQL of a table whose rows are given."""
    typed = _typed(columns)
    nothing = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in typed.items())
    if not rows:
        return f"SELECT {nothing} WHERE 1 = 0"
    listed = ",\n".join("(" + ", ".join(map(literal, row)) + ")" for row in rows)
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in typed.items())
    return f"SELECT {casts} FROM (VALUES {listed}) given({', '.join(typed)})"
