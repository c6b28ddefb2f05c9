"""Reads a trace with the standard library's sqlite3."""
import os
import sqlite3

_CALLS = """
SELECT c.call_id, c.op, c.step, c.phase, c.stream_id, c.thread_id, c.begin_ns, c.duration_ns, c.status,
  l.file, l.line, l.function, l.via
FROM call c LEFT JOIN call_location l ON l.call_id = c.call_id
WHERE (c.leaf = 1 OR :enclosing) {conditions}
ORDER BY c.call_id
"""


class Trace:
    """A trace of acltape, opened for reading. Use it in a `with`, or call close()."""

    def __init__(self, path):
        """Raises FileNotFoundError when there is no such file, ValueError when it is no trace."""
        if not os.path.exists(path):
            raise FileNotFoundError(f"there is no trace '{path}'; `acltape record -o {path} -- ...` makes one")
        self.path = os.fspath(path)
        uri = "file:" + "".join(c if c.isalnum() or c in "/._-" else "".join(f"%{b:02x}" for b in c.encode())
                                for c in os.path.abspath(self.path)) + "?mode=ro"
        self._connection = sqlite3.connect(uri, uri=True)
        try:
            found = self._connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.DatabaseError:
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

    def meta(self):
        """Facts about the recording, by name."""
        return dict(self._connection.execute("SELECT key, value FROM meta"))
