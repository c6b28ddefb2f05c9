"""Writes fleet tables of a trace, slowly and by the text of docs/schema.md alone: what other writers are compared with.

    slow_writer.py DIR TRACE [RUN [RANK]]
"""
import hashlib
import json
import os
import sqlite3
import sys
import zlib

import pyarrow
import pyarrow.parquet

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from acltape.fleet.tables import RENAMED, STEPPED, TABLES  # noqa: E402

TYPES = {"BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64(), "VARCHAR": pyarrow.string()}
STEP = ("(SELECT iif(t.last_call >= c.call_id, t.step, NULL) FROM step t WHERE t.first_call <= c.call_id "
        "ORDER BY t.first_call DESC LIMIT 1)")


def rows_of(connection, table):
    names = [RENAMED.get(table, {}).get(name, name) for name in TABLES[table]]
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    if not there:
        return []
    listed = ", ".join(STEP if (table, name) == ("call_row", "step") else name if name in there else "NULL"
                       for name in names)
    return connection.execute(f'SELECT {listed} FROM "{table}" c').fetchall()


def write(folder, trace, run="one", rank=0, **facts):
    """Adds a trace as one part."""
    connection = sqlite3.connect(trace)
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    rows = {table: rows_of(connection, table) for table in TABLES}
    connection.close()
    write_rows(folder, rows, run, rank, **{
        "trace": {"path": os.path.abspath(trace), "bytes": os.path.getsize(trace), "digest": None},
        "host": meta.get("host"), "program": meta.get("command"), "acltape_version": meta.get("acltape_version"),
        "schema_version": int(meta["schema_version"]), **facts})


def write_rows(folder, rows, run, rank, **facts):
    """Adds a part whose rows are given by table; facts: more of what its manifest says."""
    os.makedirs(os.path.join(folder, "manifest"), exist_ok=True)
    marker = os.path.join(folder, "acltape_fleet.json")
    if not os.path.exists(marker):
        with open(marker, "w") as file:
            json.dump({"format": 1, "tables": 1}, file)
    hashed = hashlib.sha256(f"{run} {rank}".encode()).hexdigest()[:12]
    tables = {table: write_table(folder, table, rows.get(table, []), run, rank, hashed) for table in TABLES}
    said = {"format": 1, "run": run, "rank": rank, "world_size": None, "label": None, "hash": hashed, "trace": {},
            "host": None, "program": None, "recorded": None, "exported": None, "acltape_version": None,
            "schema_version": None, "lacks": [], "tables": tables, **facts}
    name = os.path.join(folder, "manifest", f"{run}.{rank}.json")
    with open(name + ".new", "w") as file:
        json.dump(said, file)
    os.replace(name + ".new", name)


def write_table(folder, table, rows, run, rank, hashed):
    """Writes the file of a table, if it has rows; what the manifest says of it."""
    columns = TABLES[table]
    if not rows:
        return {"rows": 0, "files": []}
    below = ["data", table, f"run={run}", f"rank={rank}", *(["first_step=-1"] if table in STEPPED else [])]
    os.makedirs(os.path.join(folder, *below), exist_ok=True)
    path = "/".join([*below, f"{hashed}-0.parquet"])
    arrays = [pyarrow.array([kept(row[place], kind) for row in rows], type=TYPES[kind])
              for place, kind in enumerate(columns.values())]
    pyarrow.parquet.write_table(pyarrow.table(arrays, names=list(columns)), os.path.join(folder, path),
                                compression="zstd")
    return {"rows": len(rows), "files": [{
        "path": path, "rows": len(rows), "bytes": os.path.getsize(os.path.join(folder, path)), "row_groups": 1,
        "first_step": -1, "last_step": -1, "crc32": crc32_of(os.path.join(folder, path))}]}


def crc32_of(path):
    with open(path, "rb") as file:
        return zlib.crc32(file.read())


def kept(value, kind):
    if value is None or kind == "BIGINT":
        return value
    return float(value) if kind == "DOUBLE" else str(value)


if __name__ == "__main__":
    write(*sys.argv[1:4], *map(int, sys.argv[4:5]))
