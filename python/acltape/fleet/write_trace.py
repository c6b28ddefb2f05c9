"""Writes the tables of a trace as parquet files of a part."""
import json
import os
import queue
import threading

from acltape import frames
from acltape.fleet.columns import Failure
from acltape.fleet.parts import DEVICE, TRACE
from acltape.fleet.tables import RENAMED, STEPPED, TABLES

# A file of a table in STEPPED ends at the first step that begins after so many rows; one without steps, and one of
# another table, ends after MOST_ROWS.
FILE_ROWS = 1 << 20
MOST_ROWS = 1 << 22
GROUP_ROWS = 1 << 18  # of a row group, which is all that is in memory
_MOST_STEP = 10**15  # of a path; no recording comes near
# Tables with many rows: their columns in which values repeat, so that a dictionary is worth its time. Their other
# whole numbers are stored as differences.
_REPEATING = {
    "call_row": ("signature_id", "thread_id", "scope_id", "bits", "duration_ns", "stack_id", "step"),
    "call_extra": ("status", "stream_id", "model_id"),
    "buffer_row": ("bytes", "flags"),
    "device_span": ("stream_id", "error_ns"),
    "snapshot": ("position", "moment", "bytes", "packing", "changed", "nan_count", "inf_count"),
}


def select(table, has_steps):
    """The statement that gives the rows of a table with the columns of TABLES."""
    renamed = RENAMED.get(table, {})
    step = "step_of_call(call_id) AS step" if has_steps else "NULL AS step"
    columns = [step if (table, name) == ("call_row", "step") else f'"{renamed.get(name, name)}" AS "{name}"'
               for name in TABLES[table]]
    order = " ORDER BY call_id" if table in STEPPED else ""
    return f'SELECT {", ".join(columns)} FROM "{table}"{order}'


class Pieces:
    """Where the files of tables in STEPPED begin: calls, and the step of each."""

    def __init__(self, trace):
        self._path = trace.path
        steps = trace.values("SELECT step, first_call, last_call FROM step WHERE first_call IS NOT NULL AND "
                             "last_call IS NOT NULL ORDER BY first_call", "step", ["BIGINT"] * 3)
        (first, last, calls), = trace.values("SELECT min(call_id), max(call_id), count(*) FROM call_row", "call_row",
                                             ["BIGINT"] * 3)
        self._steps = steps
        self.begins = [0] if first is None else self._cut(first, last + 1, calls / (last + 1 - first))

    def _cut(self, call, end, density):
        begins = [call]

        def cut_long(until):
            while (until - begins[-1]) * density > MOST_ROWS:
                begins.append(begins[-1] + int(MOST_ROWS / density))

        for _, first_call, _ in self._steps:
            if (first_call - begins[-1]) * density >= FILE_ROWS:
                cut_long(first_call)
                if first_call > begins[-1]:
                    begins.append(first_call)
        cut_long(end)
        return begins

    def has_steps(self):
        return bool(self._steps)

    def steps_of(self, piece):
        """(step of the first call or None, first step, last step) of the calls of a piece."""
        begin = self.begins[piece]
        end = self.begins[piece + 1] if piece + 1 < len(self.begins) else None
        inside = [step for step, first, last in self._steps if last >= begin and (end is None or first < end)]
        of_first = [step for step, first, last in self._steps if first <= begin <= last]
        return (of_first[-1] if of_first else None, inside[0] if inside else None, inside[-1] if inside else None)

    def split(self, batch):
        """(piece, rows) for the rows of a batch, in which call_id ascends."""
        calls = batch.column(batch.schema.get_field_index("call_id"))
        if calls.null_count:
            raise Failure(TRACE, f"'{self._path}' cannot be used: a row of one of its tables has no call_id; no "
                                 "acltape wrote that, so record the program again")
        offset = 0
        while offset < len(batch):
            piece = max(_count_below(self.begins, calls[offset].as_py() + 1) - 1, 0)
            until = len(batch)
            if piece + 1 < len(self.begins):
                until = _count_below(calls, self.begins[piece + 1], offset)
            yield piece, batch.slice(offset, until - offset)
            offset = until


def _count_below(ascending, limit, begin=0):
    """How many values lie before the first that is at least `limit`."""
    end = len(ascending)
    while begin < end:
        middle = (begin + end) // 2
        value = ascending[middle]
        if (value if isinstance(value, int) else value.as_py()) < limit:
            begin = middle + 1
        else:
            end = middle
    return begin


class _File:
    """A parquet file that is being written, a row group at a time."""

    def __init__(self, part, table, number, schema, steps=None):
        first_step = None if steps is None else -1 if steps[0] is None else steps[0]
        if first_step is not None and not -1 <= first_step < _MOST_STEP:
            first_step = -1
        self.relative, self.path = part.data_file(table, number, first_step)
        self.steps = steps
        self.rows = self.groups = 0
        self._waiting, self._waiting_rows = [], 0
        self._writer = frames.package("pyarrow.parquet").ParquetWriter(
            self.path, schema, compression="zstd", compression_level=1, store_schema=False,
            write_page_checksum=True, **_encodings(table))

    def write(self, batch):
        self._waiting.append(batch)
        self._waiting_rows += len(batch)
        if self._waiting_rows >= GROUP_ROWS:
            self._flush()

    def _flush(self):
        table = frames.package("pyarrow").Table.from_batches(self._waiting)
        self._writer.write_table(table, row_group_size=GROUP_ROWS * 2)
        self.rows += self._waiting_rows
        self.groups += 1
        self._waiting, self._waiting_rows = [], 0

    def row_count(self):
        return self.rows + self._waiting_rows

    def finish(self):
        """The entry of the manifest."""
        if self._waiting:
            self._flush()
        self._writer.close()
        entry = {"path": self.relative, "rows": self.rows, "bytes": os.path.getsize(self.path),
                 "row_groups": self.groups}
        if self.steps is not None:
            entry["first_step"], entry["last_step"] = self.steps[1:]
        return entry

    def abandon(self):
        try:
            self._writer.close()
        except OSError:
            pass  # the disk is full; the part removes the file


def _encodings(table):
    repeating = _REPEATING.get(table)
    if repeating is None:
        return {}
    others = [name for name, kind in TABLES[table].items() if kind == "BIGINT" and name not in repeating]
    return {"use_dictionary": list(repeating), "column_encoding": dict.fromkeys(others, "DELTA_BINARY_PACKED")}


def _batches(reader):
    """The batches of a reader. What fails here is the trace's, and not that of the file that is being written."""
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except ValueError as error:  # a value of another type than its column, a damaged page
            raise Failure(TRACE, str(error)) from None
        except OSError as error:
            raise Failure(DEVICE, str(error)) from None
        yield batch


def _ahead(batches):
    """The same batches, read in another thread while the caller works on the one before."""
    ready, stopped = queue.Queue(2), threading.Event()

    def put(item):
        while not stopped.is_set():
            try:
                return ready.put(item, timeout=0.1)
            except queue.Full:
                pass

    def read():
        try:
            for batch in batches:
                put((batch, None))
            put((None, None))
        except BaseException as error:  # handed to the caller
            put((None, error))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    try:
        while True:
            batch, error = ready.get()
            if error is not None:
                raise error
            if batch is None:
                return
            yield batch
    finally:
        stopped.set()
        reading.join()


def write_table(trace, part, table, pieces, told, read_ahead=False):
    """Writes all rows of a table. The table's entry of the manifest. told(rows) is called now and then."""
    reader = trace.rows(select(table, pieces.has_steps()), table, TABLES[table].values())
    schema, batches = reader.schema, _batches(reader)
    entries, file, open_piece = [], None, None
    try:
        for batch in _ahead(batches) if read_ahead else batches:
            for piece, rows in pieces.split(batch) if table in STEPPED else ((None, batch),):
                if file is not None and (piece != open_piece or piece is None and file.row_count() >= MOST_ROWS):
                    entries.append(file.finish())
                    file = None
                if file is None:
                    steps = None if piece is None else pieces.steps_of(piece)
                    file, open_piece = _File(part, table, len(entries), schema, steps), piece
                file.write(rows)
            told(len(batch))
        if file is not None:
            entries.append(file.finish())
            file = None
    finally:
        if file is not None:
            file.abandon()
    return {"rows": sum(entry["rows"] for entry in entries), "files": entries}


def lacks_of(trace, facts, tables):
    """What the trace does not have, in sentences."""
    said = []
    if facts["state"] != "complete":
        said.append("the recording did not end by itself: what happened last may be missing")
    if facts["schema_version"] < facts["known_version"]:
        said.append(f"the trace has schema version {facts['schema_version']}: columns that came later are NULL")
    if not tables["call_row"]["rows"]:
        said.append("the trace has no calls")
    elif not tables["step"]["rows"]:
        said.append("the trace has no steps; where its program marked none, `acltape steps` looks for them before the "
                    "trace is added")
    if not tables["device_span"]["rows"]:
        said.append("the trace has no times of a device, which record --device-times takes")
    for kind, count, cause in trace.values(
            "SELECT kind, count, cause FROM ledger WHERE severity IN ('data_loss', 'error') ORDER BY kind, subject",
            "ledger", ["VARCHAR", "BIGINT", "VARCHAR"]):
        said.append(f"{kind}, {count} times: {cause}")
    if trace.replaced_texts():
        said.append(f"{trace.replaced_texts()} texts had bytes that are no UTF-8, which were replaced")
    return said


def write_tables(trace, part, facts, told, read_ahead=False):
    """All tables of the trace: their entries of the manifest, and what they lack."""
    pieces = Pieces(trace)
    tables = {}
    for table in TABLES:
        if table in facts["tables"]:
            tables[table] = write_table(trace, part, table, pieces, told, read_ahead)
        else:
            tables[table] = {"rows": 0, "files": []}
    return tables, lacks_of(trace, facts, tables)


def program_of(meta):
    """The command line that was recorded."""
    try:
        return " ".join(str(word) for word in json.loads(meta["command"]))
    except (KeyError, TypeError, ValueError):
        return None
