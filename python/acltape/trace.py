"""Reads a trace with the standard library's sqlite3."""
import os
import sqlite3
import stat

from acltape import frames

_CALLS = """
SELECT c.call_id, c.op, c.step, c.phase, c.stream_id, c.thread_id, c.begin_ns, c.duration_ns, c.status,
  l.file, l.line, l.function, l.via
FROM call c LEFT JOIN call_location l ON l.call_id = c.call_id
WHERE (c.leaf = 1 OR :enclosing) {conditions}
ORDER BY c.call_id
"""

# The files beside a trace that SQLite reads, writes and removes by itself, and how a journal ends that names
# a "super-journal" (https://sqlite.org/fileformat.html#super_journal). As in acltape's storage/side_files.cpp.
_SIDE_FILES = ("-wal", "-shm", "-journal")
_MAGIC = bytes.fromhex("d9d505f920a163d7")


def _names_super_journal(journal):
    try:
        file = os.open(journal, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        size = os.fstat(file).st_size
        end = os.pread(file, 16, size - 16) if size > 16 else b""
    finally:
        os.close(file)
    return end[8:] == _MAGIC and end[:4] != bytes(4)


def _judge_side_files(path):
    """Raises ValueError if opening the trace could touch another file than the trace and its own side files.

    SQLite writes into a side file that is a link, and removes a file that a journal names.
    """
    def refuse(side, what):
        raise ValueError(f"'{path}' is not opened: '{side}' beside it {what}, and no acltape left it so; move that "
                         "file away, and the trace is read as it is without it")

    for side in (os.path.realpath(path) + suffix for suffix in _SIDE_FILES):
        try:
            status = os.lstat(side)
        except OSError:
            continue
        if stat.S_ISLNK(status.st_mode):
            refuse(side, "is a link to another file")
        if not stat.S_ISREG(status.st_mode):
            refuse(side, "is no plain file")
        if status.st_nlink > 1:
            refuse(side, "is another file too (a hard link)")
        if side.endswith("-journal") and _names_super_journal(side):
            refuse(side, "names another file, which SQLite would remove")


class Trace:
    """A trace of acltape, opened for reading. Use it in a `with`, or call close()."""

    def __init__(self, path):
        """Raises FileNotFoundError when there is no such file, ValueError when it is no trace.

        ValueError too when a file beside it would make SQLite write or remove a file that is not the trace's.
        """
        if not os.path.exists(path):
            raise FileNotFoundError(f"there is no trace '{path}'; `acltape record -o {path} -- ...` makes one")
        _judge_side_files(path)
        self.path = os.fspath(path)
        uri = "file:" + "".join(c if c.isalnum() or c in "/._-" else "".join(f"%{b:02x}" for b in c.encode())
                                for c in os.path.abspath(self.path)) + "?mode=ro"
        self._connection = sqlite3.connect(uri, uri=True)
        try:
            found = self._connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.DatabaseError as error:
            if "readonly" in str(error):  # reading would have to write: SQLITE_READONLY_ROLLBACK
                self._connection.close()
                raise ValueError(f"a program that wrote to '{path}' was killed; `acltape info {path}` undoes what it "
                                 "left half done") from None
            found = None
        if found != 0x41434C54:
            self._connection.close()
            raise ValueError(f"'{path}' is no trace of acltape")

    def close(self):
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def query(self, sql, parameters=()):
        """The rows of an SQL statement. The file is opened for reading alone: nothing can be changed."""
        cursor = self._connection.execute(sql, parameters)
        columns = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchall()
        try:
            import pandas
        except ImportError:
            return [dict(zip(columns, row)) for row in rows]
        return pandas.DataFrame(rows, columns=columns)

    def calls(self, step=None, op=None, enclosing=False):
        """The leaves with operator, times and line of source.

        step: of this step alone. op: of this operator alone, such as "aten::mm" or "aten::add.Tensor".
        enclosing: composite operators and backward nodes too.
        """
        conditions, parameters = [], {"enclosing": int(enclosing)}
        if step is not None:
            conditions.append("AND c.step = :step")
            parameters["step"] = step
        if op is not None:
            conditions.append("AND (c.op = :op OR c.op LIKE :op || '.%')")
            parameters["op"] = op
        return self.query(_CALLS.format(conditions=" ".join(conditions)), parameters)

    def pandas(self, view, parameters=()):
        """A pandas.DataFrame of a view or table by its name ("top_ops"), or of an SQL statement."""
        return frames.pandas(frames.Rows(self._connection, view, parameters))

    def polars(self, view, parameters=()):
        """The same as a polars.DataFrame."""
        return frames.polars(frames.Rows(self._connection, view, parameters))

    def arrow(self, view, parameters=()):
        """The same as a pyarrow.Table."""
        return frames.arrow(frames.Rows(self._connection, view, parameters))

    def views(self):
        """The names of all views and tables that are meant to be queried."""
        return frames.views_of(self._connection)

    def write_parquet(self, folder, views=None, force=False):
        """Writes each view into a file FOLDER/VIEW.parquet, and yields {"view", "rows", "file"} of each.

        views: these alone. force: replace files of the same names. Memory does not grow with the trace.
        """
        frames.judge_folder(folder, force)
        for view in self.views() if views is None else views:
            path = os.path.join(folder, f"{view}.parquet")
            partial = path + ".partial"
            count = frames.write_parquet(frames.Rows(self._connection, view), partial)
            os.replace(partial, path)
            yield {"view": view, "rows": count, "file": path}

    def meta(self):
        """Facts about the recording, by name."""
        return dict(self._connection.execute("SELECT key, value FROM meta"))
