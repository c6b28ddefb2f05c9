"""Kinds of damage to a folder of fleet tables: files that are no longer as they were written, foreign files, manifests
that nobody writes. One number always gives the same damage.

Each function damages one part of a folder and says what must follow:

  OUT      the part is left out by name, and the others are answered
  WHOLE    nothing changes in any answer
  EITHER   one of the two
  VALUES   also another value of the damaged part, or a sentence: the checksum was changed with the file, so that
           nothing is left to tell it by
  REFUSED  the folder cannot be opened, which one sentence says
"""
import glob
import json
import os
import socket
import zlib

import hostile_footer
import pyarrow
import pyarrow.parquet

OUT, WHOLE, EITHER, VALUES, REFUSED = "out", "whole", "either", "values", "refused"
CANARY = "CANARY-of-another-file-4711"


class Target:
    """A copy of a fleet, and the part in it that is damaged."""

    def __init__(self, folder, rank, chance, outside):
        self.folder, self.rank, self.chance, self.outside = folder, rank, chance, outside
        self.table = None  # whose file is damaged; None: the part as a whole
        self.manifest = os.path.join(folder, "manifest", f"night.{rank}.json")

    def replace(self, path, content):
        """The copy shares its files with others by hard links, so none is written in place."""
        os.unlink(path)
        with open(path, "wb") as file:
            file.write(content)

    def file(self, table=None):
        """A file of the part, and its bytes."""
        tables = sorted(os.path.basename(path) for path in glob.glob(os.path.join(self.folder, "data", "*")))
        self.table = table or self.chance.choice(["call_row", "buffer_row", self.chance.choice(tables)])
        path, = glob.glob(os.path.join(self.folder, "data", self.table, "run=night", f"rank={self.rank}", "**",
                                       "*.parquet"), recursive=True)
        with open(path, "rb") as file:
            return path, file.read()

    def said(self):
        with open(self.manifest) as file:
            return json.load(file)

    def say(self, said):
        self.replace(self.manifest, json.dumps(said).encode())

    def tell(self, **facts):
        """The manifest tells of the damaged file what it is now, as one of ill intent would write it."""
        said = self.said()
        entry, = said["tables"][self.table]["files"]
        path = os.path.join(self.folder, entry["path"])
        entry["bytes"] = os.path.getsize(path)
        if "crc32" not in facts:
            with open(path, "rb") as file:
                entry["crc32"] = zlib.crc32(file.read())
        entry.update(facts)
        said["tables"][self.table]["rows"] = entry["rows"]
        self.say(said)

    def changed(self, path, content, told=VALUES):
        """Writes other bytes to a file. The manifest tells of them or not, by chance."""
        self.replace(path, bytes(content))
        if self.chance.random() < 0.4:
            return OUT
        self.tell()
        return told


# Bytes of files.

def _regions(content):
    """By name: the bytes of a file that a part of parquet's format takes."""
    metadata = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content)).metadata
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    regions = {"footer": [(footer, len(content))], "header": [], "data": [], "dictionary": []}
    for number in range(metadata.row_group(0).num_columns):
        column = metadata.row_group(0).column(number)
        begin, end = column.data_page_offset, column.data_page_offset + 20
        regions["header"].append((begin, end))
        if column.has_dictionary_page and column.dictionary_page_offset:
            regions["header"].append((column.dictionary_page_offset, column.dictionary_page_offset + 20))
            regions["dictionary"].append((column.dictionary_page_offset + 20, begin))
        regions["data"].append((end, end + max(column.total_compressed_size - 40, 1)))
    return regions


def flipped(region):
    def damage(target):
        path, content = target.file()
        begin, end = target.chance.choice(_regions(content)[region] or [(4, len(content))])
        changed = bytearray(content)
        for _ in range(target.chance.choice((1, 1, 4, 30))):
            changed[target.chance.randrange(begin, max(min(end, len(content)), begin + 1))] ^= \
                1 << target.chance.randrange(8)
        if bytes(changed) == content:
            changed[begin] ^= 1
        return target.changed(path, changed)
    return damage


def cut(target):
    path, content = target.file()
    return target.changed(path, content[:target.chance.randrange(len(content))], told=OUT)


def empty(target):
    path, _ = target.file()
    return target.changed(path, b"", told=OUT)


def longer(target):
    path, content = target.file()
    return target.changed(path, content + target.chance.randbytes(target.chance.randrange(1, 3000)), told=EITHER)


def padded(target):
    """Bytes that no page and no footer needs lie in a file."""
    path, content = target.file()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return target.changed(path, content[:footer] + target.chance.randbytes(100) + content[footer:], told=WHOLE)


# Parquet of another kind.

def written(change, told, table="call_row", **options):
    """A file that a writer of parquet wrote; its manifest tells of it as it is."""
    def damage(target):
        path, content = target.file(table)
        rows = pyarrow.parquet.read_table(pyarrow.BufferReader(content))
        out = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(change(rows), out, **{"compression": "zstd", **options})
        target.replace(path, out.getvalue().to_pybytes())
        target.tell()
        return told
    return damage


def same(rows):
    return rows


def _typed(kind):
    def change(rows):
        place = rows.column_names.index("duration_ns")
        values = [str(value) if pyarrow.types.is_string(kind) else value for value in rows["duration_ns"].to_pylist()]
        return rows.set_column(place, "duration_ns", pyarrow.array(values).cast(kind))
    return change


def _listed(make):
    """A column of lists or structures in place of one of numbers."""
    def change(rows):
        values = [make(value) for value in rows["duration_ns"].to_pylist()]
        return rows.set_column(rows.column_names.index("duration_ns"), "duration_ns", pyarrow.array(values))
    return change


def _more(name, value=7):
    return lambda rows: rows.append_column(name, pyarrow.array([value] * len(rows)))


def _renamed(name, other):
    return lambda rows: rows.rename_columns([other if each == name else each for each in rows.column_names])


def _noted(size):
    return lambda rows: rows.replace_schema_metadata({"note": "A" * size})


def by_hand(content, told=OUT, **facts):
    """A file that is written byte by byte, with a footer that no writer writes."""
    def damage(target):
        path, _ = target.file("call_row")
        target.replace(path, content())
        target.tell(**facts)
        return told
    return damage


def encrypted(target):
    path, content = target.file("call_row")
    begin = b"PARE" if target.chance.random() < 0.5 else content[:4]
    target.replace(path, begin + content[4:-4] + b"PARE")
    target.tell()
    return OUT


# Foreign files.

def foreign(make):
    """Something else in the place of a file. The manifest tells the size that it has."""
    def damage(target):
        path, content = target.file()
        os.unlink(path)
        make(target, path, content)
        if os.path.isfile(path) and not os.path.islink(path):
            target.tell(**({"crc32": 0} if os.path.getsize(path) > 1 << 30 else {}))
        return OUT
    return damage


def _text(path, text):
    with open(path, "wb") as file:
        file.write(text)


def _sparse(target, path, content):
    """A file of a terabyte of holes; its end may be that of a sound file."""
    with open(path, "wb") as file:
        file.truncate(1 << 40)
        if target.chance.random() < 0.5:
            file.seek((1 << 40) - len(content))
            file.write(content)


def _socket(target, path, content):
    before = os.getcwd()
    os.chdir(os.path.dirname(path))  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.basename(path))
    os.chdir(before)


def _device(target, path, content):
    try:
        os.mknod(path, 0o020666, os.makedev(1, 5))  # /dev/zero
    except OSError:
        os.symlink("/dev/zero", path)


def _linked_folder(target):
    path, _ = target.file("call_row")
    folder = os.path.dirname(os.path.dirname(path))
    other = os.path.join(target.folder, "elsewhere")
    os.rename(folder, other)
    os.symlink(other, folder)
    return OUT


FOREIGN = {
    "nothing": lambda target, path, content: None,
    "CSV": lambda target, path, content: _text(path, b"call_id,step\n1,2\n"),
    "FIFO": lambda target, path, content: os.mkfifo(path),
    "device": _device,
    "socket": _socket,
    "folder": lambda target, path, content: os.mkdir(path),
    "link to a file outside": lambda target, path, content: os.symlink(target.outside, path),
    "link to another part": lambda target, path, content: os.symlink(
        path.replace(f"rank={target.rank}", f"rank={(target.rank + 1) % 3}"), path),
    "link to itself": lambda target, path, content: os.symlink(path, path),
    "terabyte": _sparse,
    "parquet of one row": lambda target, path, content: pyarrow.parquet.write_table(
        pyarrow.table({"call_id": [1]}), path),
}


# Manifests.

def manifest_of(text, told=OUT):
    def damage(target):
        target.replace(target.manifest, text)
        return told
    return damage


def manifest_with(change, told=OUT):
    def damage(target):
        said = target.said()
        change(said)
        target.say(said)
        return told
    return damage


def _put(told=OUT, **values):
    return manifest_with(lambda said: said.update(values), told)


def _path(value, told=OUT):
    def change(said):
        entry, = said["tables"]["call_row"]["files"]
        entry["path"] = value(entry["path"]) if callable(value) else value
    return manifest_with(change, told)


def _entry(told=OUT, **values):
    return manifest_with(lambda said: said["tables"]["call_row"]["files"][0].update(values), told)


def _words(old, new, told):
    """Other words in the text of a manifest."""
    def damage(target):
        with open(target.manifest, "rb") as file:
            text = file.read()
        assert old in text, old
        target.replace(target.manifest, text.replace(old, new, 1))
        return told
    return damage


def manifest_as(make):
    """Something else in the place of a manifest."""
    def damage(target):
        os.unlink(target.manifest)
        make(target, target.manifest, b"")
        return OUT
    return damage


def _one_byte(target):
    """A byte of the manifest. It is compared with nothing, so a name in it may be another."""
    with open(target.manifest, "rb") as file:
        text = bytearray(file.read())
    text[target.chance.randrange(len(text))] = target.chance.randrange(256)
    target.replace(target.manifest, bytes(text))
    return VALUES


def _beside(name):
    """The manifest once more by another name: the first by name is read."""
    def damage(target):
        os.link(target.manifest, os.path.join(os.fsencode(target.folder), b"manifest", name))
        return WHOLE
    return damage


def _files_twice(said):
    for table in said["tables"].values():
        table["files"], table["rows"] = table["files"] * 2, table["rows"] * 2


def _nested(depth, begin=b"[", end=b"]"):
    return begin * depth + end * depth


MANIFESTS = {
    "no JSON": manifest_of(b"{"),
    "nothing": manifest_of(b""),
    "a list": manifest_of(b"[]"),
    "binary": manifest_of(bytes(range(256))),
    "UTF-16": manifest_of("{}".encode("utf-16")),
    "too large": manifest_of(b" " * (17 << 20)),
    "2 million lists": manifest_of(b"[" + b"[]," * 2000000 + b"[]]"),
    **{f"nested {depth}": manifest_of(_nested(depth)) for depth in (500, 980, 995, 5000, 1000000)},
    "nested objects": manifest_of(_nested(900, b'{"a":', b"}")),
    "a host nested": _words(b'"host": null', b'"host": ' + _nested(900), WHOLE),
    "a run nested": _words(b'"run": "night"', b'"run": ' + _nested(900), OUT),
    "a number of 5,000 digits": _words(b'"world_size": 3', b'"world_size": ' + b"9" * 5000, OUT),
    "a large number": _put(world_size=10 ** 300, told=WHOLE),
    "NaN": _put(world_size=float("nan"), told=WHOLE),
    "infinity": _put(schema_version=float("inf"), told=WHOLE),
    "rank -1": _put(rank=-1),
    "rank 1.0": _put(rank=1.0),
    "rank of 40 digits": _put(rank=10 ** 40),
    "another rank": _put(rank=77),
    "rank true": _put(rank=True),
    "run above": _put(run="../night"),
    "run empty": _put(run=""),
    "run of another name": _put(run="day"),
    "run with a surrogate": _put(run="night\ud800"),
    "run with an end of line": _put(run="night\n"),
    "run is a list": _put(run=["night"]),
    "format 2": _put(format=2),
    "no format": _put(format=None),
    "path above": _path(lambda path: "data/call_row/../call_row/" + path.split("/", 2)[2]),
    "path above the folder": _path("../../../../etc/passwd"),
    "path absolute": _path("/etc/passwd"),
    "path to the canary": _path("../canary.csv"),
    "path of another part": _path(lambda path: path.replace("rank=", "rank=0")),
    "path with a point": _path(lambda path: path.replace("data/", "./data/")),
    "path twice /": _path(lambda path: path.replace("data/", "data//")),
    "path of a host": _path("https://127.0.0.1/x.parquet"),
    "path of s3": _path("s3://bucket/x.parquet"),
    "path with a pattern": _path(lambda path: path.replace("-0.parquet", "-*.parquet")),
    "path with a quote": _path(lambda path: path.replace("-0", "-'0")),
    "path with NUL": _path(lambda path: path.replace("-0", "\0-0")),
    "path with an end of line": _path(lambda path: path + "\n"),
    "path with escapes": _path("data/\x1b[2J\x07"),
    "path is a number": _path(7),
    "path with a surrogate": _path("\udcff"),
    "other step in a path": _path(lambda path: path.replace("first_step=-1", "first_step=" + "9" * 30)),
    "rows -1": _entry(rows=-1),
    "rows too many": _entry(rows=1 << 61),
    "rows NaN": _entry(rows=float("nan")),
    "bytes 0": _entry(bytes=0),
    "bytes too many": _entry(bytes=1 << 61),
    "bytes a text": _entry(bytes="1"),
    "checksum a text": _entry(crc32="x"),
    "checksum another": _entry(crc32=1),
    "checksum gone": _entry(crc32=None, told=WHOLE),
    "first steps odd": _entry(first_step="x", last_step=[1], told=WHOLE),
    "other sum of rows": manifest_with(lambda said: said["tables"]["call_row"].update(rows=1)),
    "files twice": manifest_with(_files_twice),
    "no tables": _put(tables={}),
    "tables a list": _put(tables=[]),
    "tables of numbers": _put(tables={"call_row": 1}),
    "no table call_row": manifest_with(lambda said: said["tables"].pop("call_row")),
    "an unknown table": manifest_with(lambda said: said["tables"].update({"evil\x1b[2J": [1]}), WHOLE),
    "lacks a number": _put(lacks=5, told=WHOLE),
    "lacks a text": _put(lacks="abc", told=WHOLE),
    "lacks of all kinds": _put(lacks=[None, {}, "\0\x1b]0;x\x07\ud800", 7], told=WHOLE),
    "lacks 300,000 things": _put(lacks=["x"] * 300000, told=WHOLE),
    "texts with NUL and escapes": _put(host="\0\x1b[2J", program="'); DROP TABLE part; --\0", recorded="\ud800",
        told=WHOLE),
    "a path with escapes": _put(trace={"path": "\x9b31m\u202e\ud83d"}, told=VALUES),
    "texts of other types": _put(host=[1], program={"a": 1}, trace=[], label=7, acltape_version=None, told=VALUES),
    "a key twice": _words(b'"label": "main"', b'"label": "x", "label": "main"', WHOLE),
    "a rank twice": _words(b'"format": 1', b'"format": 1, "rank": 0', WHOLE),
    "a mark of UTF-8": _words(b'{"format"', b'\xef\xbb\xbf{"format"', OUT),
    "one byte": _one_byte,
    "FIFO": manifest_as(FOREIGN["FIFO"]),
    "device": manifest_as(_device),
    "folder": manifest_as(FOREIGN["folder"]),
    "link": manifest_as(FOREIGN["link to a file outside"]),
    "terabyte": manifest_as(_sparse),
    "once more": _beside(b"zz.json"),
    "once more with an end of line": _beside(b"zz\n\x1b[2J.json"),
    "once more in no text": _beside(b"zz\xff\xfe.json"),
    "a hidden one": _beside(b".hidden.json"),
}


# The folder as a whole.

def marker(make):
    def damage(target):
        path = os.path.join(target.folder, "acltape_fleet.json")
        os.unlink(path)
        make(target, path, b"")
        return REFUSED
    return damage


def _marker_of(text):
    return marker(lambda target, path, content: _text(path, text))


def manifests_linked(target):
    folder = os.path.join(target.folder, "manifest")
    os.rename(folder, folder + "s")
    os.symlink(folder + "s", folder)
    return REFUSED


FOLDERS = {
    "no marker": marker(FOREIGN["nothing"]),
    "marker no JSON": _marker_of(b"{"),
    "marker a list": _marker_of(b"[1]"),
    "marker of format 2": _marker_of(b'{"format": 2}'),
    "marker empty": _marker_of(b""),
    "marker of a text": _marker_of(b'{"format": "\\u001b[2J\\ud800"}'),
    "marker of NaN": _marker_of(b'{"format": NaN}'),
    **{f"marker nested {depth}": _marker_of(b'{"format": ' + _nested(depth) + b"}") for depth in (900, 970, 985,
        99999)},
    "marker a FIFO": marker(FOREIGN["FIFO"]),
    "marker a folder": marker(FOREIGN["folder"]),
    "marker a link": marker(FOREIGN["link to a file outside"]),
    "marker of a terabyte": marker(_sparse),
    "manifests a link": manifests_linked,
}

SCHEMAS = {
    **{f"type {kind}": written(_typed(kind), OUT) for kind in (pyarrow.string(), pyarrow.int32(), pyarrow.uint64(),
        pyarrow.float64(), pyarrow.timestamp("us"), pyarrow.decimal128(20, 0), pyarrow.bool_())},
    "whole numbers by another name": written(_typed(pyarrow.duration("ns")), WHOLE),
    "a column twice": written(lambda rows: rows.append_column("call_id", rows["call_id"]), OUT),
    "a column twice by case": written(_renamed("begin_ns", "DURATION_NS"), OUT),
    "lists": written(_listed(lambda value: [value]), OUT),
    "structures": written(_listed(lambda value: {"duration_ns": value}), OUT),
    "lists of lists": written(_listed(lambda value: [[value], []]), OUT),
    "a column of lists more": written(_more("later", [1, 2]), OUT),
    "no step": written(lambda rows: rows.drop_columns(["step"]), OUT),
    "no known column": written(lambda rows: pyarrow.table({"x": rows["call_id"]}), OUT),
    "fewer rows": written(lambda rows: rows.slice(1), VALUES),
    "no duration": written(lambda rows: rows.drop_columns(["duration_ns"]), VALUES),
    "a column more": written(_more("later"), WHOLE),
    "columns of the path": written(lambda rows: _more("first_step")(_more("rank")(_more("run", "evil")(rows))), WHOLE),
    "another order": written(lambda rows: rows.select(rows.column_names[::-1]), WHOLE),
    **{f"compression {name}": written(same, WHOLE, compression=name) for name in ("snappy", "gzip", "brotli", "lz4",
        "none")},
    "pages of version 2": written(same, WHOLE, data_page_version="2.0"),
    "pages of one row": written(same, WHOLE, data_page_size=1, write_batch_size=1),
    "groups of one row": written(same, WHOLE, row_group_size=1),
    "a note of a megabyte": written(_noted(1 << 20), WHOLE),
    "a note of 80 MB": written(_noted(80 << 20), OUT),
    "long texts": written(_more("later", "A" * 200000), WHOLE, use_dictionary=False),
    "encrypted": encrypted,
    "a footer alone": by_hand(lambda: hostile_footer.flat(["call_id", "step", "duration_ns"], 12)),
    "rows without end": by_hand(lambda: hostile_footer.flat(["call_id", "step", "duration_ns"], 1 << 60),
        rows=1 << 60, told=VALUES),
    "an unknown codec": by_hand(lambda: hostile_footer.flat(["call_id", "step"], 12, codec=hostile_footer.LZO)),
    "a codec of no number": by_hand(lambda: hostile_footer.flat(["call_id", "step"], 12, codec=99)),
    "a column before the file": by_hand(lambda: hostile_footer.flat(["call_id", "step"], 12, offset=-50)),
    "a column past the file": by_hand(lambda: hostile_footer.flat(["call_id", "step"], 12, size=1 << 40)),
    "a size below zero": by_hand(lambda: hostile_footer.flat(["call_id", "step"], 12, size=-1)),
    "many columns": by_hand(lambda: hostile_footer.flat(["call_id", "step", *map(str, range(9000))], 12)),
    "an odd type": by_hand(lambda: hostile_footer.flat(["call_id", "step"], 12, physical=77)),
    **{f"nested {depth}": by_hand(lambda depth=depth: hostile_footer.nested(depth)) for depth in (50, 5000, 500000)},
}

KINDS = {
    **{f"bytes: {region}": flipped(region) for region in ("footer", "header", "data", "dictionary")},
    "bytes: cut": cut, "bytes: empty": empty, "bytes: longer": longer, "bytes: padded": padded,
    **{f"schema: {name}": damage for name, damage in SCHEMAS.items()},
    **{f"foreign: {name}": foreign(make) for name, make in FOREIGN.items()},
    "foreign: linked folder": _linked_folder,
    **{f"manifest: {name}": damage for name, damage in MANIFESTS.items()},
    **{f"folder: {name}": damage for name, damage in FOLDERS.items()},
}
