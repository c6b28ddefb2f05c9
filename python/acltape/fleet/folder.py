"""Reads what a folder of fleet tables says of itself, and judges each file before an engine opens it.

The folder may come from anywhere. A part (one rank of one run) is taken if its manifest can be read, names plain files
inside of DIR/data alone, and each of these is parquet with the rows and columns that it should have. Any other part is
left out whole, as questions over half a part would have wrong answers, and is named with the reason.

Note [A changed byte]. DuckDB compares no checksum of a page, so a byte that changed on the disk would be another number
in an answer. The manifest has the CRC-32 of each file, and a file is compared with it once for each opened folder. That
finds damage. Who changes a folder by intent can change both.
"""
import collections
import json
import os
import re
import zlib
from concurrent.futures import ThreadPoolExecutor

from acltape.fleet.plain_file import open_plain
from acltape.fleet.tables import STEPPED, TABLES
from acltape.frames import package

FORMAT = 1
_MOST_MANIFEST_BYTES = 16 << 20
_MOST_NOTE = 500  # letters of a text that a manifest says of itself
_RUN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}\.parquet")
_MOST_NUMBER = 1 << 62
_MOST_LACKS = 100  # sentences of a manifest
# Lists in a footer: of columns and of row groups. A file that acltape writes has 16 groups at most.
_MOST_IN_FOOTER = 1 << 13
# A file of holes takes no place on the disk, and longer to read than anybody waits.
_LARGE_FILE, _MOST_HOLES = 1 << 30, 8
UNCHECKED = ("its manifest has no checksums of its files, so a damaged byte in them may go unnoticed; add the trace "
             "again with --force")

# crc32: None where the manifest does not say it.
File = collections.namedtuple("File", "path columns rows bytes crc32")
Part = collections.namedtuple("Part", "run rank world_size label trace host program recorded exported acltape_version "
                                      "schema_version lacks files")
LeftOut = collections.namedtuple("LeftOut", "name reason")


class FolderError(ValueError):
    """The folder as a whole cannot be read."""


class _Refused(Exception):
    """Why a part is left out."""


def shown(text):
    """A text of others, so that it cannot change the terminal."""
    text = "".join(letter if letter.isprintable() else "?" for letter in str(text))
    return text if len(text) <= _MOST_NOTE else text[:_MOST_NOTE] + "..."


class Folder:
    """What a folder holds: `parts`, and what was `left_out`, each with a reason. Opened files are judged on demand."""

    def __init__(self, path):
        self.path = os.path.abspath(os.fspath(path))
        self._judge_format()
        self.parts, self.left_out = [], []
        self._judged = set()
        seen = {}
        for name in self._manifests():
            try:
                part = self._read_part(name)
                key = part.run, part.rank
                if key in seen:
                    raise _Refused(f"it is rank {part.rank} of run {part.run}, as {seen[key]} is")
                seen[key] = name
                self.parts.append(part)
            except _Refused as refused:
                self.left_out.append(LeftOut(f"manifest/{shown(name)}", str(refused)))
        self.parts.sort(key=lambda part: (part.run, part.rank))

    def judge(self, tables):
        """Looks at the files of these tables. Parts with one that is not as it should be are left out from here on."""
        new = [table for table in tables if table not in self._judged]
        self._judged.update(new)
        places = [(part, table) for part in self.parts for table in new]
        refused = {}

        def judge_files(place):
            part, table = place
            if id(part) in refused:
                return
            try:
                files = [self._judge_file(table, file) for file in part.files.get(table, ())]
                part.files[table] = [file for file in files if file.rows]
            except _Refused as why:
                refused[id(part)] = str(why)

        # Reading and its checksums use all cores.
        with ThreadPoolExecutor(min(os.cpu_count() or 1, 16)) as pool:
            list(pool.map(judge_files, places))
        taken = []
        for part in self.parts:
            if id(part) in refused:
                self._leave_out(part, refused[id(part)])
            else:
                taken.append(part)
        self.parts = taken

    def leave_out_of(self, paths, reason):
        """Leaves out the parts that these files belong to."""
        taken = []
        for part in self.parts:
            bad = next((file.path for files in part.files.values() for file in files if file.path in paths), None)
            if bad is None:
                taken.append(part)
            else:
                self._leave_out(part, f"the file {os.path.relpath(bad, self.path)} {reason}")
        self.parts = taken

    def _leave_out(self, part, reason):
        self.left_out.append(LeftOut(f"rank {part.rank} of run {part.run}", reason))

    def files(self, table):
        """The files of a table that was judged, of all parts."""
        return [file for part in self.parts for file in part.files.get(table, ())]

    def lacking(self):
        """Pairs of what the traces of parts lack and of which parts these are, in words."""
        of = collections.defaultdict(list)
        for part in self.parts:
            for sentence in part.lacks:
                of[sentence].append(f"{part.run} rank {part.rank}")
        return [(sentence, ", ".join(parts if len(parts) < 5 else [*parts[:3], f"{len(parts) - 3} others"]))
                for sentence, parts in of.items()]

    def head(self):
        """Sentences for the head of each answer: what was left out, and what was not recorded."""
        return ([f"left out: {name}: {reason}" for name, reason in self.left_out]
                + [f"lacking in {parts}: {sentence}" for sentence, parts in self.lacking()])

    def _judge_format(self):
        marker = os.path.join(self.path, "acltape_fleet.json")
        named = shown(self.path)
        if os.path.lexists(self.path) and not os.path.isdir(self.path):
            raise FolderError(f"'{named}' is no folder; acltape query asks one trace, and acltape fleet add makes a "
                              "folder of fleet tables of traces")
        if not os.path.isdir(self.path):
            raise FolderError(f"there is no folder '{named}'; the folder of fleet tables comes before the question, "
                              "and acltape fleet add makes one")
        if not os.path.lexists(marker):
            raise FolderError(f"'{named}' is no folder of fleet tables, as it has no acltape_fleet.json; acltape fleet "
                              "add makes one")
        try:
            said = _json_of(marker)
        except _Refused as refused:
            raise FolderError(f"'{named}' is no folder of fleet tables: acltape_fleet.json: {refused}") from None
        found = said.get("format") if isinstance(said, dict) else None
        if found != FORMAT:
            raise FolderError(f"'{named}' has format {_in_short(found)} of fleet tables, and this acltape reads "
                              f"{FORMAT}; use the acltape that wrote it, or add the traces again")

    def _manifests(self):
        folder = os.path.join(self.path, "manifest")
        if not os.path.lexists(folder):
            return []
        if os.path.islink(folder) or not os.path.isdir(folder):
            raise FolderError(f"'{shown(self.path)}' cannot be read: manifest in it is a link or no folder")
        try:
            names = os.listdir(folder)
        except OSError as error:
            raise FolderError(f"'{shown(self.path)}' cannot be read: {error.strerror}") from None
        return sorted(name for name in names if name.endswith(".json") and not name.startswith("."))

    def _read_part(self, name):
        said = _json_of(os.path.join(self.path, "manifest", name))
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise _Refused("its manifest is of another format")
        run, rank = said.get("run"), said.get("rank")
        if not isinstance(run, str) or not _RUN.fullmatch(run):
            raise _Refused("its name of a run is none")
        if not _is_number(rank):
            raise _Refused("its rank is no number")
        files = {}
        tables = said.get("tables")
        if not isinstance(tables, dict):
            raise _Refused("its manifest names no tables")
        lacks = said.get("lacks")
        lacks = [shown(line) for line in lacks if isinstance(line, str)] if isinstance(lacks, list) else []
        for table, of_table in tables.items():
            if table not in TABLES:
                lacks.append(f"the table {shown(table)} is of another version of acltape and is not read")
                continue
            files[table] = self._files_of(run, rank, table, of_table)
        for table in ("meta", "op", "signature", "call_row"):
            if table not in files:
                raise _Refused(f"its manifest does not name the table {table}")
        paths = [file.path for of_table in files.values() for file in of_table]
        if len(set(paths)) < len(paths):
            raise _Refused("its manifest names a file twice")
        if any(file.crc32 is None for of_table in files.values() for file in of_table):
            lacks.append(UNCHECKED)
        if len(lacks) > _MOST_LACKS:
            lacks[_MOST_LACKS:] = [f"{len(lacks) - _MOST_LACKS} things more that its manifest names"]
        trace = said.get("trace") if isinstance(said.get("trace"), dict) else {}
        texts = [_text(said.get(key)) for key in ("host", "program", "recorded", "exported", "acltape_version")]
        schema = said.get("schema_version")
        world = said.get("world_size")
        return Part(run, rank, world if _is_number(world) else None, _text(said.get("label")),
                    _text(trace.get("path")), *texts, schema if _is_number(schema) else None, lacks, files)

    def _files_of(self, run, rank, table, of_table):
        """The files that a manifest names for a table; what is in them is not known yet."""
        listed = of_table.get("files") if isinstance(of_table, dict) else None
        if not isinstance(listed, list):
            raise _Refused(f"its manifest names no files of the table {table}")
        files = [self._named_file(run, rank, table, entry) for entry in listed]
        if of_table.get("rows") != sum(file.rows for file in files):
            raise _Refused(f"the files of {table} do not have the rows that the manifest says")
        return files

    def _named_file(self, run, rank, table, entry):
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            raise _Refused(f"its manifest names no path of a file of {table}")
        words = entry["path"].split("/")
        expected = ["data", table, f"run={run}", f"rank={rank}"]
        stepped = len(words) == 6 and table in STEPPED and re.fullmatch(r"first_step=-?\d{1,18}", words[4])
        if words[:4] != expected or len(words) != (6 if stepped else 5) or not _FILE.fullmatch(words[-1]):
            raise _Refused(f"the path '{shown(entry['path'])}' is not one of run {run}, rank {rank}, table {table}")
        if not _is_number(entry.get("rows")) or not _is_number(entry.get("bytes")):
            raise _Refused(f"its manifest does not say how large the file '{shown(entry['path'])}' is")
        crc32 = entry.get("crc32")
        if crc32 is not None and not _is_number(crc32):
            raise _Refused(f"its manifest has a checksum of '{shown(entry['path'])}' that is no number")
        return File(os.path.join(self.path, *words), (), entry["rows"], entry["bytes"], crc32)

    def _judge_file(self, table, named):
        path, below = named.path, os.path.relpath(named.path, self.path)
        parquet = package("pyarrow.parquet")
        error = package("pyarrow").ArrowException
        try:
            with _plain_file(path, self.path) as file:
                size = os.fstat(file.fileno()).st_size
                if size != named.bytes:
                    raise _Refused(f"the file {below} has {size} bytes, and its manifest says {named.bytes}")
                _judge_contents(file, named, below)
                footer = parquet.ParquetFile(file, thrift_string_size_limit=64 << 20,
                                             thrift_container_size_limit=_MOST_IN_FOOTER)
                rows, schema = footer.metadata.num_rows, footer.metadata.schema
                _judge_groups(footer.metadata, size)
        except OSError as why:
            raise _Refused(f"the file {below} cannot be read: {shown(why.strerror or why)}") from None
        except (error, ValueError, OverflowError, MemoryError) as why:
            first = str(why).splitlines()[0] if str(why) else type(why).__name__
            raise _Refused(f"the file {below} is no parquet file that can be read: {shown(first)}") from None
        if rows != named.rows:
            raise _Refused(f"the file {below} has {rows} rows, and its manifest says {named.rows}")
        return File(path, _columns(table, schema, below), rows, size, named.crc32)


def _judge_contents(file, named, below):
    """Compares a file with the checksum of its manifest. Raises _Refused."""
    if named.bytes > _LARGE_FILE and os.fstat(file.fileno()).st_blocks * 512 * _MOST_HOLES < named.bytes:
        raise _Refused(f"the file {below} has {named.bytes} bytes and hardly any of them on the disk")
    if named.crc32 is None:
        return
    crc = 0
    while piece := file.read(1 << 20):
        crc = zlib.crc32(piece, crc)
    file.seek(0)
    if crc != named.crc32:
        raise _Refused(f"the file {below} was damaged or changed: its checksum (CRC-32) is {crc}, and its manifest "
                       f"says {named.crc32}; add the trace again with --force")


def _judge_groups(metadata, size):
    """Raises ValueError if row groups do not lie in the file, or do not add up."""
    rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows += group.num_rows
        for place in range(group.num_columns):
            column = group.column(place)
            begin = column.data_page_offset
            if column.has_dictionary_page and column.dictionary_page_offset is not None:
                begin = min(begin, column.dictionary_page_offset)
            if begin < 4 or column.total_compressed_size < 0 or begin + column.total_compressed_size > size:
                raise ValueError("a column lies outside of the file")
            if column.num_values != group.num_rows:
                raise ValueError("a column has not one value for each row")
    if rows != metadata.num_rows:
        raise ValueError("its row groups do not add up")


# By type of a table: how parquet stores it, and its words for what that means (newer ones, then older ones).
_STORED = {"BIGINT": ("INT64", ("NONE NONE", "INT INT_64")), "DOUBLE": ("DOUBLE", ("NONE NONE",)),
           "VARCHAR": ("BYTE_ARRAY", ("STRING UTF8", "NONE UTF8"))}


def _columns(table, schema, path):
    """The columns of a file that the table knows. Raises _Refused for a type that is another.

    Engines do not tell the case of letters apart, so two columns with one name differ in more than that.
    """
    known, found, seen = TABLES[table], [], set()
    for place in range(len(schema)):
        column = schema.column(place)
        name = column.path
        if column.max_repetition_level > 0 or name != column.name or column.max_definition_level > 1:
            raise _Refused(f"the column {shown(name)} of {path} is of type list or structure, which no table has")
        if name.lower() in seen:
            raise _Refused(f"the file {path} has the column {shown(name)} twice")
        seen.add(name.lower())
        if name not in known:
            continue
        physical, meanings = _STORED[known[name]]
        meaning = f"{column.logical_type.type} {column.converted_type}"
        if column.physical_type != physical or meaning not in meanings:
            stored = column.physical_type if meaning == "NONE NONE" else f"{column.physical_type} ({meaning})"
            raise _Refused(f"the column {name} of {path} is of type {shown(stored)}, and should be {known[name]}")
        found.append(name)
    if not found or (table == "call_row" and "step" not in found):
        raise _Refused(f"the file {path} lacks the column {'step' if found else next(iter(known))}")
    return tuple(name for name in known if name in found)


def _plain_file(path, top):
    """A file opened for reading. Raises OSError for a link, on the way too, and for what is no plain file."""
    below = os.path.relpath(path, top).split(os.sep)
    for count in range(1, len(below)):
        if os.path.islink(os.path.join(top, *below[:count])):
            raise OSError(0, "a folder on its path is a link")
    return open_plain(path)


def _json_of(path):
    try:
        with _plain_file(path, os.path.dirname(path)) as file:
            text = file.read(_MOST_MANIFEST_BYTES + 1)
    except OSError as error:
        raise _Refused(f"it cannot be read: {shown(error.strerror or error)}") from None
    if len(text) > _MOST_MANIFEST_BYTES:
        raise _Refused("it is too large")
    try:
        return json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _Refused("it is no JSON") from None


def _in_short(value):
    """A value of a document, which may be nested deeper than Python can show."""
    return shown(value) if isinstance(value, (str, int, float)) else "that is no number" if value else "none"


def _is_number(value):
    return type(value) is int and 0 <= value < _MOST_NUMBER


def _text(value):
    return shown(value) if isinstance(value, str) else None
