#!/usr/bin/env python3
"""A question reads a folder of fleet tables and nothing else, and files that are not as they should be are named."""
import glob
import json
import os
import random
import shutil
import subprocess

import packages

packages.enter()
import pyarrow  # noqa: E402
import pyarrow.parquet  # noqa: E402
import slow_writer  # noqa: E402
from harness import BINARY, CommandTest, main  # noqa: E402

from acltape import fleet  # noqa: E402
from acltape.fleet.duckdb_engine import QuestionError  # noqa: E402

BIN = os.path.dirname(BINARY)
COUNTS = "SELECT rank, count(*) AS calls, sum(duration_ns) AS ns FROM call GROUP BY rank ORDER BY rank"
# Each would read, write, load or set something else than the folder's tables.
REFUSED = """SELECT * FROM read_csv('{outside}')
SELECT * FROM read_text('{outside}')
SELECT * FROM read_blob('{marker}')
SELECT * FROM read_json('{marker}')
SELECT * FROM '{outside}'
SELECT * FROM glob('{folder}/*')
SELECT * FROM sniff_csv('{outside}')
SELECT * FROM parquet_metadata('{stray}')
SELECT * FROM read_parquet('{stray}')
SELECT * FROM read_parquet('https://127.0.0.1/x.parquet')
SELECT * FROM sqlite_scan('{trace}', 'op')
SELECT * FROM query_table('{outside}')
SELECT getenv('HOME')
SELECT * FROM outside
SELECT 1; SELECT 2
COPY (SELECT 1) TO '{written}'
COPY part TO '{written}' (FORMAT parquet)
EXPORT DATABASE '{written}'
ATTACH '{written}' AS other
CREATE TABLE x AS SELECT 1
CREATE VIEW x AS SELECT 1
DROP VIEW call_row
INSERT INTO part VALUES (1)
DELETE FROM part
SET enable_external_access = true
SET memory_limit = '100GB'
RESET allowed_paths
INSTALL httpfs
LOAD httpfs
PRAGMA database_list
CALL enable_logging()
BEGIN TRANSACTION
PREPARE x AS SELECT 1
EXPLAIN ANALYZE SELECT 1
VACUUM ANALYZE
SELECT
SELEC 1
SELECT nope FROM call
SELECT * FROM no_such_table
no_such_view""".splitlines()


class Safe(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        one = cls("test_what_is_no_question_over_the_folder_is_refused")
        cls.trace = one.path("t.db")
        subprocess.run([os.path.join(BIN, "synthetic_trace_file"), cls.trace, "2000"], check=True, capture_output=True)
        cls.good = one.path("good")
        for rank in range(2):
            slow_writer.write(cls.good, cls.trace, "night", rank)
        with fleet.open(cls.good) as opened:
            cls.answer = opened.arrow(COUNTS).to_pylist()

    def changed_folder(self):
        folder = self.path("changed")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.good, folder, symlinks=True)
        return folder

    def file_of(self, folder, table="call_row", rank=1):
        return glob.glob(os.path.join(folder, "data", table, "run=night", f"rank={rank}", "**", "*.parquet"),
                         recursive=True)[0]

    def manifest(self, folder, change):
        path = os.path.join(folder, "manifest", "night.1.json")
        with open(path) as file:
            said = json.load(file)
        change(said)
        with open(path, "w") as file:
            json.dump(said, file)

    def tell(self, folder, path):
        """The manifest names the size and the checksum that the file has now, as one of ill intent would."""
        def change(said):
            for table in said["tables"].values():
                for file in table["files"]:
                    if os.path.join(folder, file["path"]) == path:
                        file["bytes"], file["crc32"] = os.path.getsize(path), slow_writer.crc32_of(path)
        self.manifest(folder, change)

    def assertLeftOut(self, folder, *words):
        """Rank 1 is left out by name, for the reason that these words tell; rank 0 is answered."""
        with fleet.open(folder) as opened:
            self.assertEqual(opened.arrow(COUNTS).to_pylist(), self.answer[:1])
            self.assertEqual(len(opened.folder.left_out), 1, opened.head)
            for word in words:
                self.assertIn(word, opened.head[0])

    def test_what_is_no_question_over_the_folder_is_refused(self):
        names = {"outside": self.path("outside.csv"), "marker": os.path.join(self.good, "acltape_fleet.json"),
                 "folder": self.good, "stray": os.path.join(self.good, "stray.parquet"), "trace": self.trace,
                 "written": self.path("written")}
        with open(names["outside"], "w") as file:
            file.write("a\n1\n")
        pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), names["stray"])
        with fleet.open(self.good) as opened:
            for question in REFUSED:
                with self.subTest(question=question), self.assertRaises(QuestionError):
                    print(opened.arrow(question.format(**names)))
            self.assertEqual(opened.arrow(COUNTS).to_pylist(), self.answer)
        self.assertFalse(os.path.exists(names["written"]))
        os.remove(names["stray"])

    def test_files_that_no_manifest_names_are_not_read(self):
        folder = self.changed_folder()
        shutil.copy(self.file_of(folder), self.file_of(folder).replace("-0.parquet", "-1.parquet"))
        with open(os.path.join(folder, "manifest", ".night.7.json"), "w") as file:
            file.write("half")
        with fleet.open(folder) as opened:
            self.assertEqual(opened.arrow(COUNTS).to_pylist(), self.answer)
            self.assertEqual(opened.head, [])

    def test_a_file_that_is_cut_short_gone_or_a_link_is_named(self):
        folder = self.changed_folder()
        path = self.file_of(folder)
        os.truncate(path, os.path.getsize(path) // 2)
        self.assertLeftOut(folder, "rank 1 of run night", "call_row", "bytes, and its manifest says")
        self.tell(folder, path)
        self.assertLeftOut(folder, "no parquet file that can be read")
        os.remove(path)
        self.assertLeftOut(folder, "No such file")
        os.symlink(self.file_of(self.good), path)
        self.assertLeftOut(folder, "cannot be read")
        os.remove(path)
        os.mkfifo(path)
        self.assertLeftOut(folder, "no plain file")

    def test_a_folder_that_is_a_link_is_not_followed(self):
        folder = self.changed_folder()
        shutil.rmtree(os.path.join(folder, "data", "call_row", "run=night", "rank=1"))
        os.symlink(os.path.join(self.good, "data", "call_row", "run=night", "rank=1"),
                   os.path.join(folder, "data", "call_row", "run=night", "rank=1"))
        self.assertLeftOut(folder, "a folder on its path is a link")

    def test_other_columns_types_and_numbers_of_rows_are_named(self):
        folder = self.changed_folder()
        path = self.file_of(folder)
        table = pyarrow.parquet.read_table(path, partitioning=None)
        whole = table.slice(0)

        def with_ids(kind):
            return table.set_column(0, "call_id", table["call_id"].cast(kind))
        listed = pyarrow.array([[call] for call in table["call_id"].to_pylist()])
        names = ["Call_ID" if name == "begin_ns" else name for name in table.column_names]
        for changed, words in (
                (with_ids(pyarrow.string()), ["call_id", "should be BIGINT"]),
                (with_ids(pyarrow.int32()), ["call_id", "INT32"]),
                (with_ids(pyarrow.uint64()), ["call_id", "UINT_64"]),
                (table.set_column(0, "call_id", listed), ["call_id", "list or structure"]),
                (table.rename_columns(names), ["the column Call_ID twice"]),
                (table.set_column(0, "call_id", table["call_id"].cast(pyarrow.timestamp("us"))), ["TIMESTAMP"]),
                (table.drop_columns(["step"]), ["lacks the column step"]),
                (table.slice(1), ["rows, and its manifest says"]),
                (pyarrow.table({"a": [1] * len(table)}), ["lacks the column call_id"])):
            pyarrow.parquet.write_table(changed, path)
            self.tell(folder, path)
            self.assertLeftOut(folder, *words)
        # More columns and another order of them do no harm.
        more = whole.select(whole.column_names[::-1]).append_column("later", whole["call_id"])
        pyarrow.parquet.write_table(more, path)
        self.tell(folder, path)
        with fleet.open(folder) as opened:
            self.assertEqual(opened.arrow(COUNTS).to_pylist(), self.answer)

    def test_pages_that_cannot_be_decoded_are_named(self):
        folder = self.changed_folder()
        path = self.file_of(folder)
        with open(path, "r+b") as file:
            file.seek(40)
            file.write(b"\xff" * 400)
        self.tell(folder, path)
        self.assertLeftOut(folder, "cannot be read whole", "call_row")

    def test_a_changed_value_that_can_be_decoded_is_named(self):
        """One bit of a duration in a file without compression: only the checksum tells."""
        folder = self.changed_folder()
        path = self.file_of(folder)
        table = pyarrow.parquet.read_table(path, partitioning=None)
        pyarrow.parquet.write_table(table, path, compression="none", use_dictionary=False)
        self.tell(folder, path)
        with fleet.open(folder) as opened:
            self.assertEqual(opened.arrow(COUNTS).to_pylist(), self.answer)
        duration = table["duration_ns"][7].as_py().to_bytes(8, "little")
        with open(path, "r+b") as file:
            place = file.read().index(b"".join(value.as_py().to_bytes(8, "little") for value in
                                               table["duration_ns"][7:17]))
            file.seek(place)
            file.write(bytes([duration[0] ^ 1]))
        self.assertLeftOut(folder, "was damaged or changed", "add the trace again")
        self.tell(folder, path)
        with fleet.open(folder) as opened:
            self.assertNotEqual(opened.arrow(COUNTS).to_pylist(), self.answer)

    def test_a_manifest_without_checksums_is_read_and_said_so(self):
        folder = self.changed_folder()
        self.manifest(folder, lambda said: said["tables"]["call_row"]["files"][0].pop("crc32"))
        with fleet.open(folder) as opened:
            self.assertEqual(opened.arrow(COUNTS).to_pylist(), self.answer)
            line, = opened.head
            self.assertIn("lacking in night rank 1: its manifest has no checksums", line)

    def test_names_above_the_folder_change_nothing(self):
        """DuckDB reads values of columns and patterns from paths."""
        shutil.copytree(self.good, self.path("f1"))
        slow_writer.write(self.path("f1"), self.trace, "night", 7)
        for name in ("run=x/rank=77/step=5/first_step=3/call_id=1/f", "f[1]", "f*", "it's ? {a,b}"):
            folder = self.path(name)
            shutil.copytree(self.good, folder)
            with self.subTest(name=name), fleet.open(folder) as opened:
                self.assertEqual(opened.arrow(COUNTS).to_pylist(), self.answer)
                self.assertEqual(opened.arrow("SELECT DISTINCT run FROM call_row").to_pylist(), [{"run": "night"}])

    def test_manifests_that_are_none_are_named(self):
        def put(key, value):
            return lambda said: said.update({key: value})

        def path_of(value):
            return lambda said: said["tables"]["call_row"]["files"][0].update(path=value)
        there = "data/call_row/run=night/rank=1/first_step=-1/"
        for change, words in (
                (put("format", 2), ["of another format"]), (put("run", "../x"), ["name of a run"]),
                (put("run", ["night"]), ["name of a run"]), (put("rank", -1), ["rank is no number"]),
                (put("rank", 10 ** 40), ["rank is no number"]), (put("rank", "1"), ["rank is no number"]),
                (put("tables", []), ["names no tables"]), (put("rank", 0), ["is not one of run night, rank 0"]),
                (put("tables", {"op": 1}), ["no files of the table op"]),
                (put("tables", {}), ["does not name the table"]),
                (path_of("/etc/passwd"), ["is not one of run night"]),
                (path_of(there + "../x.parquet"), ["is not one"]),
                (path_of(there.replace("rank=1", "rank=0") + "x.parquet"), ["is not one"]),
                (path_of(there + "x'.parquet"), ["is not one"]), (path_of(7), ["names no path"]),
                (lambda said: said["tables"]["op"].update(rows=7), ["do not have the rows"]),
                (lambda said: said["tables"]["op"]["files"][0].update(crc32="x"), ["checksum", "is no number"]),
                (lambda said: said["tables"]["op"].update(
                    files=said["tables"]["op"]["files"] * 2, rows=2 * said["tables"]["op"]["rows"]),
                 ["names a file twice"])):
            folder = self.changed_folder()
            self.manifest(folder, change)
            with self.subTest(words=words):
                self.assertLeftOut(folder, "manifest/night.1.json", *words)
        for text, word in (("{", "no JSON"), ("[" * 100000, "no JSON"), ("[]", "another format"),
                           ("\udc80", "no JSON")):
            folder = self.changed_folder()
            with open(os.path.join(folder, "manifest", "night.1.json"), "w", errors="surrogateescape") as file:
                file.write(text)
            self.assertLeftOut(folder, "manifest/night.1.json", word)

    def test_a_part_that_is_there_twice_is_named(self):
        folder = self.changed_folder()
        shutil.copy(os.path.join(folder, "manifest", "night.0.json"), os.path.join(folder, "manifest", "z.json"))
        with fleet.open(folder) as opened:
            self.assertEqual(opened.arrow(COUNTS).to_pylist(), self.answer)
            self.assertEqual(opened.head, ["left out: manifest/z.json: it is rank 0 of run night, as night.0.json is"])

    def test_what_a_manifest_says_cannot_change_a_terminal_or_sql(self):
        folder = self.changed_folder()
        self.manifest(folder, lambda said: said.update(
            host="\x1b[2J'); DROP", label="it's", lacks=["no\x1b[0m steps", 7], schema_version="9",
            tables={**said["tables"], "later\x07": {"rows": 0, "files": []}}))
        with fleet.open(folder) as opened:
            row, = opened.arrow("SELECT host, label, schema_version FROM part WHERE rank = 1").to_pylist()
            self.assertEqual(row, {"host": "?[2J'); DROP", "label": "it's", "schema_version": None})
            self.assertEqual(opened.head, [
                "lacking in night rank 1: no?[0m steps",
                "lacking in night rank 1: the table later? is of another version of acltape and is not read"])
            self.assertEqual(opened.arrow(COUNTS).to_pylist(), self.answer)
        self.manifest(folder, lambda said: said.update(lacks="no steps"))
        with fleet.open(folder) as opened:
            self.assertEqual(len(opened.folder.lacking()), 1, opened.head)
        self.manifest(folder, lambda said: said.update(lacks=[f"thing {number}" for number in range(150)], tables={
            table: said["tables"][table] for table in said["tables"] if not table.startswith("later")}))
        with fleet.open(folder) as opened:
            self.assertEqual(len(opened.folder.lacking()), 101)
            self.assertEqual(opened.folder.lacking()[-1][0], "50 things more that its manifest names")

    def test_a_folder_that_is_none_is_refused(self):
        deep = '{"format": ' + "[" * 900 + "]" * 900 + "}"
        for name, text in (("empty", None), ("other", "{}"), ("later", '{"format": 2}'), ("text", "x"), ("deep", deep)):
            folder = self.path(name)
            os.makedirs(folder)
            if text is not None:
                with open(os.path.join(folder, "acltape_fleet.json"), "w") as file:
                    file.write(text)
            with self.subTest(name=name), self.assertRaises(fleet.FolderError):
                fleet.open(folder)
        with self.assertRaises(fleet.FolderError):
            fleet.open(self.path("nowhere"))

    def test_a_hundred_hostile_files_are_named_or_answered(self):
        """Bytes of a file are changed by chance, and its checksum with them: its part is left out by name, or answered;
        the other is as before. With the checksum of before each is named."""
        folder = self.changed_folder()
        named = 0
        with open(self.file_of(folder), "rb") as file:
            whole = file.read()
        path = self.file_of(folder)
        for seed in range(100):
            chance = random.Random(seed)
            changed = bytearray(whole)
            while changed == whole:
                for _ in range(chance.choice((1, 4, 40))):
                    place = chance.choice((chance.randrange(len(whole)), len(whole) - 1 - chance.randrange(3000)))
                    changed[place] = chance.randrange(256)
            with open(path, "wb") as file:
                file.write(changed)
            if seed % 4:
                self.tell(folder, path)
            with fleet.open(folder) as opened:
                answer = opened.arrow(COUNTS).to_pylist()
                self.assertEqual(answer[:1], self.answer[:1], f"seed {seed}")
                self.assertEqual(len(answer) + len(opened.folder.left_out), 2, f"seed {seed}")
                if seed % 4 == 0:
                    self.assertIn("was damaged or changed", opened.head[0], f"seed {seed}")
                named += len(opened.folder.left_out)
        self.assertGreater(named, 50)


if __name__ == "__main__":
    main()
