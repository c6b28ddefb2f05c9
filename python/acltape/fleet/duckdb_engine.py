"""Asks DuckDB: one machine, all its cores, more rows than memory holds.

A connection is for one question, or for several that are known before it is made. It reads the files that were judged,
and no other file or host; a question cannot write, install or load anything, nor change a setting.
"""
import os
import re
import shutil
import tempfile

from acltape.fleet import sql
from acltape.frames import package

_MACROS = ("CREATE MACRO explode(l) AS unnest(l)", "CREATE MACRO sequence(first, last) AS range(first, last + 1)")
# DuckDB gets no extension from a host, and reads no object of the program.
_CLOSED = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
           "allow_community_extensions": "false", "python_enable_replacements": "false"}
# Views of few rows that take long. Where several views or questions read one, its rows are kept.
_KEPT = ("collective", "meeting", "op_mean", "op_step", "op_usual")
_ORDERED = re.compile(r"\blistagg\(([^(),]+), ('[^']*')\) WITHIN GROUP \(ORDER BY ([^()]+)\)")


class QuestionError(ValueError):
    """A question that the engine refuses or cannot answer."""


class Unreadable(Exception):
    """The engine could not read a file."""


# Note [Names above the folder]. DuckDB takes "run=x" anywhere in a path for the value of a column, and "[1]" for a
# pattern. So it gets no path of the user's: it reaches the folder by the number under which this process holds it.
class _Held:
    """A folder that this process holds, and the path by which it is reached."""

    def __init__(self, path):
        self._number = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.path = f"/proc/self/fd/{self._number}"

    def close(self):
        os.close(self._number)


def _sources(files, reached):
    """Pairs of columns and of SQL that reads the files that have them. reached: by file, the path for DuckDB."""
    groups = {}
    for file in files:
        stepped = os.path.basename(os.path.dirname(file.path)).startswith("first_step=")
        groups.setdefault((file.columns, stepped), []).append(reached(file))
    for (columns, _), paths in groups.items():
        listed = ", ".join(map(sql.literal, paths))
        yield columns, (f"read_parquet([{listed}], hive_partitioning = true, "
                        "hive_types = {'run': VARCHAR, 'rank': BIGINT})")


def dialect(text):
    """The SQL of a view as DuckDB spells it."""
    return _ORDERED.sub(r"string_agg(\1, \2 ORDER BY \3)", text)


class DuckDb:
    """One connection, for questions over the files of a folder as it was judged."""

    def __init__(self, folder, texts, memory=None, threads=None):
        """Raises Unreadable where a file may be to blame. texts: all questions that it is to answer."""
        self._duckdb = package("duckdb")
        self._folder = folder
        self._held = _Held(folder.path)
        self._room = tempfile.mkdtemp(prefix="acltape_fleet_")
        self._connection = self._duckdb.connect(":memory:", config={**_CLOSED, "temp_directory": self._room})
        try:
            self._set("memory_limit", memory)
            self._set("threads", threads)
            views, tables = sql.needed("\n".join(texts))
            kept = {view for view in _KEPT if view in views and sql.readers(view, views, texts) > 1}
            self._make(views, tables, kept)
            self._close_the_doors(tables)
        except self._duckdb.Error as error:
            self.close()
            raise Unreadable(first_lines(error)) from None

    def _reached(self, file):
        return os.path.join(self._held.path, os.path.relpath(file.path, self._folder.path))

    def _set(self, name, value):
        if value is not None:
            self._connection.execute(f"SET {name} = {sql.literal(str(value))}")

    def _make(self, views, tables, kept):
        make = self._connection.execute
        for macro in _MACROS:
            make(macro)
        make("CREATE TABLE part AS " + sql.rows_text(sql.PART, [tuple(getattr(part, name) for name in sql.PART)
                                                                for part in self._folder.parts]))
        make("CREATE TABLE lacking AS " + sql.rows_text(
            sql.LACKING, [(part.run, part.rank, line) for part in self._folder.parts for line in part.lacks]))
        for table in tables:
            sources = list(_sources(self._folder.files(table), self._reached))
            make(f'CREATE VIEW "{table}" AS ' + sql.table_text(table, sources))
        for alias, table in sql.ALIASES.items():
            if table in tables:
                make(f'CREATE VIEW "{alias}" AS SELECT * FROM "{table}"')
        for view in views:
            kind = "TABLE" if view in kept else "VIEW"
            make(f'CREATE {kind} "{view}" AS ' + dialect(sql.VIEWS[view]))

    def _close_the_doors(self, tables):
        files = (file for table in tables for file in self._folder.files(table))
        paths = "[" + ", ".join(sql.literal(self._reached(file)) for file in files) + "]"
        self._connection.execute(f"SET allowed_paths = {paths}")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def ask(self, text, limit=0):
        """A reader of record batches. Raises QuestionError, or Unreadable where a file may be to blame.

        limit: more rows are not read by who asks, 0 for all.
        """
        try:
            statements = self._connection.extract_statements(text)
        except self._duckdb.Error as error:
            raise QuestionError(first_lines(error)) from None
        if len(statements) != 1 or statements[0].type != self._duckdb.StatementType.SELECT:
            raise QuestionError("a question is one SELECT; nothing is written, set or loaded")
        try:
            return self._connection.sql(text).to_arrow_reader(1 << 16)
        except self._duckdb.Error as error:
            self._blame(error)

    def _blame(self, error):
        asked_wrongly = (self._duckdb.ParserException, self._duckdb.BinderException, self._duckdb.CatalogException,
                         self._duckdb.PermissionException)
        raise (QuestionError if isinstance(error, asked_wrongly) else Unreadable)(first_lines(error)) from None

    def read(self, reader):
        """The batches of an answer, with the errors that come while they are read."""
        try:
            yield from reader
        except (self._duckdb.Error, OSError, ValueError) as error:
            raise Unreadable(first_lines(error)) from None

    def close(self):
        self._connection.close()
        self._held.close()
        shutil.rmtree(self._room, ignore_errors=True)


def reads_whole(path):
    """True if all values of a file can be decoded."""
    duckdb = package("duckdb")
    try:
        held = _Held(os.path.dirname(path))
    except OSError:
        return False
    alone = duckdb.connect(":memory:", config=_CLOSED)
    try:
        source = sql.literal(os.path.join(held.path, os.path.basename(path)))
        alone.execute(f"SELECT max(hash(t)) FROM read_parquet({source}, hive_partitioning = false) t").fetchall()
        return True
    except (duckdb.Error, OSError, ValueError, MemoryError):
        return False
    finally:
        alone.close()
        held.close()


def first_lines(error):
    """What an engine says of an error, without its drawing of the place and without how the folder is reached."""
    text = re.sub(r"/proc/self/fd/\d+/", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(line for line in lines if not set(line) <= {"^", "~", " "})[:600] or type(error).__name__
