"""A trace opened by acltape's own library: its rows as columns of Arrow, without a Python object for any of them.

The library is libacltape_columns.so (storage/arrow/library.h). It lies in lib/ beside the bin/ of the command.
"""
import ctypes
import json
import os
import shlex
import shutil

from acltape import frames

NAME = "libacltape_columns.so"
# The letters of storage/arrow/column.h.
LETTERS = {"BIGINT": "i", "DOUBLE": "r", "VARCHAR": "t"}


class Failure(Exception):
    """One sentence, and the exit code of the command that met it."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


def library_path():
    """Where the library is: as ACLTAPE_COLUMNS says, in a wheel, else beside the command of PATH."""
    told = os.environ.get("ACLTAPE_COLUMNS")
    if told:
        return told
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    candidates = [os.path.join(package, "installed", "lib", "acltape", "lib", NAME)]
    command = shutil.which("acltape")
    if command:
        home = os.path.dirname(os.path.dirname(os.path.realpath(command)))
        candidates.append(os.path.join(home, "lib", NAME))
    candidates.append(os.path.join(os.path.dirname(os.path.dirname(package)), "build", "lib", NAME))
    for path in candidates:
        if os.path.exists(path):
            return path
    raise frames.Missing(f"{NAME} is neither beside the Python package nor beside an acltape on PATH; name it by the "
                         "environment variable ACLTAPE_COLUMNS")


def _load():
    try:
        library = ctypes.CDLL(library_path())
    except OSError as error:
        raise frames.Missing(f"{NAME} cannot be loaded: {error}") from None
    text, pointer = ctypes.c_char_p, ctypes.c_void_p
    for name, result, arguments in (("error", text, []),
                                    ("open", ctypes.c_int, [text, ctypes.POINTER(pointer)]),
                                    ("close", None, [pointer]),
                                    ("facts", ctypes.c_int, [pointer, ctypes.POINTER(text)]),
                                    ("rows", ctypes.c_int, [pointer, text, text, text, pointer]),
                                    ("replaced_texts", ctypes.c_int64, [pointer]),
                                    ("split", ctypes.c_int, [pointer, ctypes.c_int64, text])):
        function = getattr(library, "acltape_columns_" + name)
        function.restype, function.argtypes = result, arguments
    return library


class Columns:
    """A trace as it was when it was opened. Use it in a `with`, and in one thread at a time."""

    _library = None

    def __init__(self, path):
        """Raises Failure: no trace, a damaged one, one of a newer acltape."""
        if Columns._library is None:
            Columns._library = _load()
        self.path = os.fspath(path)
        self._trace = ctypes.c_void_p()
        self._check(self._library.acltape_columns_open(os.fsencode(self.path), ctypes.byref(self._trace)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        trace, self._trace = self._trace, None
        if trace:
            self._library.acltape_columns_close(trace)

    def _check(self, code):
        if code:
            raise Failure(code, self._library.acltape_columns_error().decode("utf-8", "replace"))

    def facts(self):
        """A dictionary (storage/arrow/trace_facts.h). Raises Failure for a trace whose killed recorder had received
        more than is in it."""
        text = ctypes.c_char_p()
        self._check(self._library.acltape_columns_facts(self._trace, ctypes.byref(text)))
        facts = json.loads(text.value)
        if facts["state"] != "recording" and os.path.lexists(self.path + ".spool"):
            raise Failure(3, f"the recorder of '{self.path}' was killed, and what it had received lies in "
                             f"'{self.path}.spool'; `acltape info {shlex.quote(self.path)}` takes it into the trace, "
                             "and without that file the trace is taken as it is")
        return facts

    def rows(self, sql, table, types):
        """A pyarrow.RecordBatchReader of a statement. types: BIGINT, DOUBLE or VARCHAR for each column.

        A value of another type ends the reading with an ArrowInvalid that names the row.
        """
        pyarrow = frames.package("pyarrow")
        letters = "".join(LETTERS[kind] for kind in types)
        # ArrowArrayStream: five pointers.
        stream = (ctypes.c_void_p * 5)()
        self._check(self._library.acltape_columns_rows(self._trace, sql.encode(), table.encode(), letters.encode(),
                                                       ctypes.cast(stream, ctypes.c_void_p)))
        return pyarrow.RecordBatchReader._import_from_c(ctypes.addressof(stream))

    def values(self, sql, table, types):
        """All rows of a statement of few rows, as tuples. Raises Failure for a value of another type."""
        try:
            rows = self.rows(sql, table, types).read_all()
        except ValueError as error:
            raise Failure(3, str(error)) from None
        return list(zip(*(column.to_pylist() for column in rows.columns)))

    def replaced_texts(self):
        """Texts so far in which bytes that are no UTF-8 were replaced."""
        return self._library.acltape_columns_replaced_texts(self._trace)

    def split(self, rank, path):
        """Writes a trace of one rank of this trace."""
        self._check(self._library.acltape_columns_split(self._trace, rank, os.fsencode(path)))
