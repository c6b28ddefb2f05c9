"""Frames of the rows of a query, and parquet files of all views, with types that SQLite does not give by itself.

A column of SQLite has a type for each value. Here it gets one type: whole numbers, real numbers when one is real,
texts, bytes, and texts when they are mixed. A column without any value has the type that a table declares for a
column of its name, else text.
"""
import os
import re

# Rows that are in memory at a time while a file is written.
BATCH = 65536
# Tables in which a trace keeps what views take apart (docs/schema.md, "How it is stored"), and contents of tensors.
_STORED = {"call_row", "call_extra", "buffer_row", "layout", "signature", "signature_argument", "table_total",
           "signature_total", "thread_total", "step_total", "host_gap", "barrier_rule", "payload"}
_DECLARED = {"INTEGER": int, "REAL": float, "TEXT": str, "BLOB": bytes}


class Missing(RuntimeError):
    """A package that is not installed; the message says how to install it."""


def package(name):
    import importlib
    import sys
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(f"this needs the Python package {name.split('.')[0]}, which {sys.executable} does not import "
                      f"({error}); install it by: {sys.executable} -m pip install {name.split('.')[0]}") from None


def views_of(connection):
    """The names of the views and tables of a trace that are meant to be queried, sorted."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('view', 'table') ORDER BY name")
    return [name for name, in rows if name not in _STORED and not name.startswith("sqlite_")]


def statement_of(connection, text):
    """An SQL statement: `text` itself, or all rows of the view or table that it names."""
    if re.fullmatch(r"\w+", text):
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (text,)).fetchone() is None:
            raise ValueError(f"'{text}' is no view of the trace; it has {', '.join(views_of(connection))}")
        return f'SELECT * FROM "{text}"'
    return text.strip().rstrip(";")


class Rows:
    """The rows of a statement in batches of columns, with the types seen so far."""

    def __init__(self, connection, text, parameters=()):
        self.connection, self.parameters = connection, parameters
        self.statement = statement_of(connection, text)
        cursor = connection.execute(self.statement, parameters)
        self.names = _unique([column[0] for column in cursor.description or ()])
        cursor.close()
        self.seen = [set() for _ in self.names]
        self.declared = self._declared(text)

    def _declared(self, text):
        """Types that tables declare: of the columns themselves, else of columns of the same name anywhere."""
        tables = [name for name, in self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if re.fullmatch(r"\w+", text):
            tables.append(text)
        declared = {name: int for name in self.names if name.endswith("_ns")}
        for table in tables:
            for row in self.connection.execute(f'PRAGMA table_info("{table}")'):
                if row[2] in _DECLARED:
                    declared[row[1]] = _DECLARED[row[2]]
        return declared

    def types(self):
        """int, float, str or bytes for each column."""
        return [_one_type(seen, self.declared.get(name, str)) for name, seen in zip(self.names, self.seen)]

    def batches(self):
        """Lists of columns, each a list of at most BATCH values."""
        cursor = self.connection.execute(self.statement, self.parameters)
        while True:
            rows = cursor.fetchmany(BATCH)
            if not rows:
                return
            columns = [list(column) for column in zip(*rows)]
            for seen, column in zip(self.seen, columns):
                seen.update(map(type, column))
            yield columns

    def columns(self):
        """All rows as columns of one type each."""
        whole = [[] for _ in self.names]
        for batch in self.batches():
            for column, more in zip(whole, batch):
                column.extend(more)
        return [_of_type(column, kind) for column, kind in zip(whole, self.types())]


def _unique(names):
    found = {}
    result = []
    for name in names:
        found[name] = found.get(name, 0) + 1
        result.append(name if found[name] == 1 else f"{name}_{found[name]}")
    return result


def _one_type(seen, otherwise):
    kinds = seen - {type(None)}
    if not kinds:
        return otherwise
    if kinds <= {int, float}:
        return float if float in kinds else int
    return kinds.pop() if len(kinds) == 1 else str


def _of_type(column, kind):
    if kind is float:
        return [value if value is None else float(value) for value in column]
    if kind is str:
        return [value if value is None or type(value) is str else
                value.decode("utf-8", "replace") if type(value) is bytes else str(value) for value in column]
    return column


def pandas(rows):
    pandas = package("pandas")
    columns = rows.columns()
    # A column of whole numbers with gaps stays one of whole numbers.
    names = {int: "Int64", float: "Float64", str: "object", bytes: "object"}
    frames = {}
    for name, column, kind in zip(rows.names, columns, rows.types()):
        gaps = kind in (int, float) and None in column
        dtype = names[kind] if gaps else {int: "int64", float: "float64"}.get(kind, "object")
        frames[name] = pandas.Series(column, dtype=dtype)
    return pandas.DataFrame(frames)


def polars(rows):
    polars = package("polars")
    types = {int: polars.Int64, float: polars.Float64, str: polars.String, bytes: polars.Binary}
    columns = rows.columns()
    return polars.DataFrame([polars.Series(name, column, dtype=types[kind])
                             for name, column, kind in zip(rows.names, columns, rows.types())])


def _schema(pyarrow, rows):
    types = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string(), bytes: pyarrow.binary()}
    return pyarrow.schema([(name, types[kind]) for name, kind in zip(rows.names, rows.types())])


def arrow(rows):
    pyarrow = package("pyarrow")
    columns = rows.columns()
    schema = _schema(pyarrow, rows)
    return pyarrow.table([pyarrow.array(column, type=field.type) for column, field in zip(columns, schema)],
                         schema=schema)


def write_parquet(rows, path):
    """Writes the rows as one parquet file, with no more than a batch in memory; their number.

    The type of a column is known when all its values were seen. If a later batch has a value that does not fit, the
    file is written again.
    """
    pyarrow = package("pyarrow")
    parquet = package("pyarrow.parquet")
    while True:
        count, writer, schema = 0, None, None
        try:
            for columns in rows.batches():
                if schema is None:
                    schema = _schema(pyarrow, rows)
                    writer = parquet.ParquetWriter(path, schema, compression="zstd")
                if not schema.equals(_schema(pyarrow, rows)):
                    break
                arrays = [pyarrow.array(_of_type(column, kind), type=field.type)
                          for column, kind, field in zip(columns, rows.types(), schema)]
                writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
                count += len(columns[0])
            else:
                if writer is None:
                    writer = parquet.ParquetWriter(path, _schema(pyarrow, rows), compression="zstd")
                return count
        finally:
            if writer is not None:
                writer.close()


def judge_folder(folder, force=False):
    """Makes the folder. Raises ValueError unless it is new or empty, or `force` and holds parquet files alone."""
    if os.path.islink(folder):
        raise ValueError(f"'{folder}' is a link, through which nothing is written; name the folder itself")
    os.makedirs(folder, exist_ok=True)
    there = sorted(os.listdir(folder))
    others = [name for name in there if not name.endswith((".parquet", ".parquet.partial"))]
    if others:
        raise ValueError(f"the folder '{folder}' holds '{others[0]}', which is no parquet file; name another folder")
    if there and not force:
        raise ValueError(f"the folder '{folder}' holds parquet files; --force replaces those of equal names")
