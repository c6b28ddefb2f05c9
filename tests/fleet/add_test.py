#!/usr/bin/env python3
"""Traces that are added to a folder of fleet tables: rows, files, and what is left when it fails."""
import json
import os
import random
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import time

import packages

packages.enter()
import pyarrow.parquet  # noqa: E402
import slow_writer  # noqa: E402
from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, main  # noqa: E402

from acltape import fleet  # noqa: E402
from acltape.fleet import add_traces, parts, write_trace  # noqa: E402
from acltape.fleet.columns import NAME, Failure  # noqa: E402
from acltape.fleet.folder import Folder  # noqa: E402
from acltape.fleet.tables import STEPPED, TABLES  # noqa: E402

BIN = os.path.dirname(BINARY)
LIBRARY = os.path.join(os.path.dirname(BIN), "lib", NAME)
os.environ.setdefault("ACLTAPE_COLUMNS", LIBRARY)
with open(os.environ["ACLTAPE_COLUMNS"], "rb") as built:
    if re.search(rb"lib[at]san\.so", built.read()):
        print("skipped: Python does not load a library that is built with a sanitizer")
        sys.exit(packages.SKIPPED)

# Adds a trace in a process of its own; PATCH goes before.
ADD = """
import os, signal, sys
sys.path.insert(0, {python!r})
from acltape.fleet import add_traces, parts, write_trace
{patch}
sys.exit(add_traces.main())
"""
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
# Replaces parts for ever: one of one trace, and two of two traces by two processes, in turn.
REPLACE = """
import sys
sys.path.insert(0, {python!r})
from acltape.fleet import add_traces
print("ready", flush=True)
for names in {rounds!r} * 1000:
    list(add_traces.answers({fleet!r}, names, force=True))
    list(add_traces.answers({fleet!r}, names[:1], run="one", force=True))
"""
KILLS = 20
# A program that records until it is killed, and counts its complete calls (tests/campaign/counted_calls.cpp).
COUNTED_CALLS = os.path.join(os.path.dirname(BIN), "tests", "campaign", "counted_calls")


def manifest(folder, run, rank):
    with open(os.path.join(folder, "manifest", f"{run}.{rank}.json")) as file:
        return json.load(file)


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(top, name), folder)
                  for top, _, names in os.walk(folder) for name in names)


def rows_of(folder, said, table):
    """All rows of a part's table, file by file."""
    rows = []
    for entry in said["tables"][table]["files"]:
        read = pyarrow.parquet.ParquetFile(os.path.join(folder, entry["path"])).read()
        types = [slow_writer.TYPES[kind] for kind in TABLES[table].values()]
        assert read.column_names == list(TABLES[table]) and read.schema.types == types, (table, read.schema)
        assert read.num_rows == entry["rows"], entry
        rows += zip(*(column.to_pylist() for column in read.columns))
    return rows


def in_order(rows):
    return sorted(rows, key=lambda row: [(cell is not None, repr(cell)) for cell in row])


class FleetTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.one = cls(methodName="skipTest")
        cls.training = cls.one.path("training.db")
        subprocess.run([os.path.join(BIN, "synthetic_trace_file"), cls.training, "3000"], check=True,
                       capture_output=True)
        cls.steps = cls.one.changed_copy(
            cls.training, "steps.db",
            *(f"INSERT INTO step VALUES({step}, {100 * step + 50}, {100 * step + 149}, 'ranges')"
              for step in range(29)))

    def setUp(self):
        self.fleet = self.path("fleet_of_" + self._testMethodName)

    def add(self, *traces, fleet=None, **options):
        """What is answered, in this process for one trace."""
        return list(add_traces.answers(fleet or self.fleet, traces, **options))

    def added(self, *traces, fleet=None, **options):
        answers = self.add(*traces, fleet=fleet, **options)
        self.assertFalse([answer for answer in answers if "row" not in answer], answers)
        self.assertEqual(Folder(fleet or self.fleet).left_out, [])
        return [answer["row"] for answer in answers]

    def failed(self, *traces, fleet=None, **options):
        return [answer["failed"] for answer in self.add(*traces, fleet=fleet, **options) if "failed" in answer]

    def in_a_process(self, patch, *words, code, **options):
        text = ADD.format(python=os.path.join(packages.SOURCE, "python"), patch=patch)
        done = subprocess.run([sys.executable, "-B", "-c", text, *words], capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def holds(self, trace, run, rank, fleet=None):
        """The part has the rows of the trace, in every table."""
        said = manifest(fleet or self.fleet, run, rank)
        connection = sqlite3.connect(trace)
        filled = 0
        for table in TABLES:
            expected = slow_writer.rows_of(connection, table)
            rows = rows_of(fleet or self.fleet, said, table)
            self.assertEqual(in_order(rows), in_order(map(tuple, expected)), table)
            self.assertEqual(said["tables"][table]["rows"], len(rows))
            filled += bool(rows)
        connection.close()
        return filled


class AddedTables(FleetTest):
    def test_each_table_has_the_rows_of_the_trace(self):
        traces = {"training": self.training, "steps": self.steps}
        for name, words in (("serving", ["2000", "--acl"]), ("graphs", ["--graphs", "3", "20", "5", "--both"])):
            traces[name] = self.path(f"{name}.db")
            subprocess.run([os.path.join(BIN, "synthetic_trace_file"), traces[name], *words], check=True,
                           capture_output=True)
        if TORCH_PYTHON is not None:
            traces["torch"] = self.path("torch.db")
            self.record(traces["torch"], TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"), payload="digest",
                        options=["--stacks", "top", "--modules"])
        for name, trace in traces.items():
            row, = self.added(trace, run=name)
            self.assertEqual((row["run"], row["rank"]), (name, 0))
            self.assertGreater(self.holds(trace, name, 0), 8, name)

    def test_the_manifest_says_where_the_part_comes_from(self):
        self.added(self.steps, run="night", rank=5, label="decoder")
        said = manifest(self.fleet, "night", 5)
        self.assertEqual((said["run"], said["rank"], said["label"]), ("night", 5, "decoder"))
        self.assertEqual(said["trace"]["path"], os.path.abspath(self.steps))
        self.assertEqual(said["trace"]["bytes"], os.path.getsize(self.steps))
        digest = subprocess.run(["sha256sum", self.steps], capture_output=True, text=True, check=True).stdout.split()[0]
        self.assertEqual(said["trace"]["digest"], f"sha256:{digest}")
        self.assertRegex(said["exported"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(said["lacks"], ["the trace has no times of a device, which record --device-times takes"])

    def test_what_a_trace_lacks_is_said(self):
        trace = self.changed_copy(
            self.training, "lacking.db", "UPDATE meta SET value = 'partial' WHERE key = 'state'",
            "INSERT INTO ledger VALUES('records_dropped', 'data_loss', 7, 'ring', 'the ring was full', 'larger rings')",
            "UPDATE op SET name = CAST(x'6f70ff' AS TEXT) WHERE op_id = 1")
        self.added(trace)
        lacks = manifest(self.fleet, "lacking", 0)["lacks"]
        for words in ("as rank 0", "did not end by itself", "no steps", "no times of a device",
                      "records_dropped, 7 times: the ring was full", "1 texts had bytes that are no UTF-8"):
            self.assertTrue(any(words in sentence for sentence in lacks), (words, lacks))

    def test_files_end_at_steps(self):
        before = write_trace.FILE_ROWS
        write_trace.FILE_ROWS = 250
        try:
            self.added(self.steps)
        finally:
            write_trace.FILE_ROWS = before
        self.assertGreater(self.holds(self.steps, "steps", 0), 8)
        said = manifest(self.fleet, "steps", 0)
        files = said["tables"]["call_row"]["files"]
        calls = [[row[0] for row in rows_of(self.fleet, {"tables": {"call_row": {"files": [entry]}}}, "call_row")]
                 for entry in files]
        # The first file holds what comes before the first step, too; a step of 100 calls is never cut.
        self.assertEqual([inside[0] for inside in calls], [1, *range(350, 2951, 300)])
        self.assertEqual([(entry["first_step"], entry["last_step"]) for entry in files],
                         [(0, 2), *((step, step + 2) for step in range(3, 27, 3)), (27, 28), (None, None)][:len(files)])
        folders = [entry["path"].split("/")[4] for entry in files]
        self.assertEqual(folders[:3], ["first_step=-1", "first_step=3", "first_step=6"])
        for table in STEPPED:
            for entry in said["tables"][table]["files"]:
                self.assertIn("/first_step=", entry["path"])

    def test_a_trace_without_steps_is_cut_too(self):
        before = write_trace.MOST_ROWS
        write_trace.MOST_ROWS = 700
        try:
            self.added(self.training)
        finally:
            write_trace.MOST_ROWS = before
        self.assertGreater(self.holds(self.training, "training", 0), 8)
        entries = manifest(self.fleet, "training", 0)["tables"]["call_row"]["files"]
        self.assertEqual(len(entries), 5)
        self.assertEqual({entry["path"].split("/")[4] for entry in entries}, {"first_step=-1"})

    def test_many_traces_are_added_by_two_processes(self):
        names = [f"t.rank{rank}.db" for rank in range(5)]
        traces = [self.changed_copy(self.training, name) for name in names]
        shares = []
        answers = add_traces.answers(self.fleet, traces, progress=lambda *told: shares.append(told))
        rows = [answer["row"] for answer in answers]
        self.assertEqual(sorted((row["run"], row["rank"]) for row in rows), [("t", rank) for rank in range(5)])
        self.assertIn("that of the name of its file", manifest(self.fleet, "t", 3)["lacks"][0])
        self.assertEqual(shares[-1][0], shares[-1][1])
        self.assertEqual(sorted(os.listdir(os.path.join(self.fleet, "writing"))), [])

    def test_a_program_adds_traces_too(self):
        row, = fleet.add(self.fleet, [self.training], run="night", rank=2, label="encoder")
        self.assertEqual((row["run"], row["rank"], row["calls"]), ("night", 2, 3276))
        part, = Folder(self.fleet).parts
        self.assertEqual((part.run, part.rank, part.label), ("night", 2, "encoder"))
        with self.assertRaisesRegex(fleet.Failure, "there is no trace 'absent.db'"):
            fleet.add(self.fleet, ["absent.db"])

    def test_each_rank_of_a_trace_is_a_part(self):
        trace = self.path("ranks.db")
        self.record(trace, os.path.join(BIN, "two_ranks"), options=["--soft", "--device-times"])
        rows = self.added(trace)
        self.assertEqual([(row["run"], row["rank"]) for row in rows], [("ranks", 0), ("ranks", 1)])
        connection = sqlite3.connect(trace)
        calls = [[row[0] for row in rows_of(self.fleet, manifest(self.fleet, "ranks", rank), "call_row")]
                 for rank in (0, 1)]
        everything = connection.execute(
            "SELECT call_id FROM call_row JOIN thread USING (thread_id) JOIN process USING (process_id) "
            "WHERE process_id IN (SELECT process_id FROM communicator) ORDER BY call_id").fetchall()
        connection.close()
        self.assertEqual(sorted(calls[0] + calls[1]), [row[0] for row in everything])
        self.assertFalse(set(calls[0]) & set(calls[1]))
        self.assertEqual(manifest(self.fleet, "ranks", 1)["world_size"], 2)
        self.assertEqual(files_of(os.path.join(self.fleet, "writing")), [])


class AddedTwice(FleetTest):
    def test_what_is_there_is_refused_and_replaced_by_force(self):
        self.added(self.training)
        self.added(self.steps, run="other")
        before = files_of(self.fleet)
        failed, = self.failed(self.training)
        self.assertEqual(failed["code"], 2)
        self.assertIn("rank 0 of run 'training' is there already, of '" + os.path.abspath(self.training), failed["why"])
        self.assertEqual(files_of(self.fleet), before)
        self.added(self.steps, run="training", force=True)
        after = files_of(self.fleet)
        kept = [path for path in before if "run=training" not in path]
        self.assertEqual([path for path in after if "run=training" not in path], kept)
        self.assertFalse({path for path in before if "run=training" in path} & set(after))
        self.assertGreater(self.holds(self.steps, "training", 0), 8)

    def test_two_that_add_the_same_part_make_one(self):
        """The second one comes to its end while the first has its part written and not committed."""
        self.added(self.training, run="other")
        patch = ("commit = parts.Part.commit\n"
                 "def late(part, manifest):\n"
                 f"    list(add_traces.answers({self.fleet!r}, [{self.steps!r}], run='same'))\n"
                 "    parts.Part.commit = commit\n"
                 "    commit(part, manifest)\n"
                 "parts.Part.commit = lambda part, manifest: (setattr(parts.Part, 'commit', commit), "
                 "late(part, manifest))\n")
        done = self.in_a_process(patch, self.fleet, self.training, "--name", "same", code=2)
        self.assertIn("is there already", done.stderr)
        self.assertGreater(self.holds(self.steps, "same", 0), 8)
        self.assertEqual(sum("run=same" in path for path in files_of(self.fleet)),
                         sum(len(table["files"]) for table in manifest(self.fleet, "same", 0)["tables"].values()))

    def test_a_folder_that_holds_something_else_is_refused(self):
        os.makedirs(self.fleet)
        with open(os.path.join(self.fleet, "mine.txt"), "w"):
            pass
        with self.assertRaisesRegex(Failure, "holds 'mine.txt' and no fleet tables"):
            self.add(self.training)
        self.assertEqual(files_of(self.fleet), ["mine.txt"])
        other = self.path("another_format")
        os.makedirs(other)
        with open(os.path.join(other, "acltape_fleet.json"), "w") as file:
            json.dump({"format": 99}, file)
        with self.assertRaisesRegex(Failure, "is of format 99"):
            self.add(self.training, fleet=other)
        os.symlink(other, self.path("a_link"))
        with self.assertRaisesRegex(Failure, "is a link"):
            self.add(self.training, fleet=self.path("a_link"))

    def test_names_that_are_none_are_refused(self):
        for run in ("", ".hidden", "a/b", "../up", "x" * 101, "a b"):
            with self.assertRaisesRegex(Failure, "cannot be the name of a run"):
                self.add(self.training, run=run)
        with self.assertRaisesRegex(Failure, "--rank names the rank of one trace"):
            self.add(self.training, self.steps, rank=3)
        self.assertEqual(add_traces.run_of("/x/night 3.rank12.db"), "night_3")
        self.assertEqual(add_traces.run_of(".db"), "run")


class AddingFails(FleetTest):
    """Nothing half is left, whatever happens, and what was there stays."""

    # By name: the point at which the process is killed, and the part that is there then.
    POINTS = {
        "first file": (f"write_trace._File.__init__ = lambda *_: {KILL}", "old"),
        "middle of a file": (f"write_trace._File.finish = lambda *_: {KILL}", "old"),
        "before the manifest": (f"parts.Part.commit = lambda *_: {KILL}", "old"),
        "manifest half written": (f"parts._write_json = lambda path, _: (open(path, 'w').write('{{'), {KILL})", "old"),
        "before the old files go": (f"parts.remove_data = lambda *_: {KILL}", "new"),
        "before the claim goes": (f"parts._remove_writing = lambda *_: {KILL}", "new"),
    }

    def test_a_killed_one_leaves_nothing_half(self):
        self.added(self.training, run="same")
        for name, (patch, part) in self.POINTS.items():
            with self.subTest(name):
                self.added(self.training, run="same", force=True)
                self.in_a_process(patch, self.fleet, self.steps, "--name", "same", "--force", code=-signal.SIGKILL)
                self.holds(self.training if part == "old" else self.steps, "same", 0)
                self.added(self.training, run="another", force=True)  # removes what the killed one left
                self.assertEqual(files_of(os.path.join(self.fleet, "writing")), [])
                named = {entry["path"] for run in ("same", "another")
                         for table in manifest(self.fleet, run, 0)["tables"].values() for entry in table["files"]}
                self.assertEqual({path for path in files_of(self.fleet) if path.startswith("data/")}, named)
                self.assertEqual(sorted(os.listdir(os.path.join(self.fleet, "manifest"))),
                                 ["another.0.json", "same.0.json"])

    def test_twenty_kills_at_seeded_moments_leave_nothing_half(self):
        """After each, all parts are whole ones of one trace, and the next addition removes what is left."""
        traces = {}
        for name, words in (("old", ["200"]), ("new", ["300"])):
            for run in ("first", "second"):
                traces[name, run] = self.path(os.path.join(name, f"{run}.db"))
                os.makedirs(self.path(name), exist_ok=True)
                subprocess.run([os.path.join(BIN, "synthetic_trace_file"), traces[name, run], *words], check=True,
                               capture_output=True)
        rounds = [[traces[name, run] for run in ("first", "second")] for name in ("new", "old")]
        for trace in rounds[1]:
            self.added(trace)
        self.added(rounds[1][0], run="one")
        text = REPLACE.format(python=os.path.join(packages.SOURCE, "python"), rounds=rounds, fleet=self.fleet)
        found = set()
        for seed in range(KILLS):
            moment = random.Random(f"kill {seed}").uniform(0, 1.5)
            adding = subprocess.Popen([sys.executable, "-B", "-c", text], stdout=subprocess.PIPE,
                                      start_new_session=True)
            with self.subTest(seed=seed, moment=moment), adding.stdout:
                self.assertEqual(adding.stdout.readline(), b"ready\n")
                time.sleep(moment)
                os.killpg(adding.pid, signal.SIGKILL)
                self.assertEqual(adding.wait(), -signal.SIGKILL)
                folder = Folder(self.fleet)
                folder.judge(list(TABLES))
                self.assertEqual((folder.left_out, [part.run for part in folder.parts]),
                                 ([], ["first", "one", "second"]))
                for part in folder.parts:
                    self.assertIn(part.trace, traces.values())
                    self.holds(part.trace, part.run, 0)
                    found.add((part.run, part.trace))
                self.assertEqual([self.failed(self.training, run="one")[0]["code"]], [2])
                self.assertEqual(files_of(os.path.join(self.fleet, "writing")), [])
                named = {entry["path"] for part in folder.parts
                         for table in manifest(self.fleet, part.run, 0)["tables"].values() for entry in table["files"]}
                self.assertEqual({path for path in files_of(self.fleet) if path.startswith("data/")}, named)
        self.assertGreater(len(found), 3, "all kills came before the first part was replaced")

    def test_nothing_is_written_or_removed_through_a_link(self):
        """A folder of somebody else, with links in the places that are written."""
        self.added(self.training)
        outside, hashed = self.path("outside"), manifest(self.fleet, "training", 0)["hash"]
        for name in ("data", "manifest", "writing", "data/op", "data/op/run=training"):
            with self.subTest(name):
                place = os.path.join(self.fleet, name)
                os.rename(place, outside)
                os.symlink(outside, place)
                before = files_of(outside)
                with self.assertRaisesRegex(Failure, f"{name}' is a link, through which nothing is written"):
                    fleet.add(self.fleet, [self.steps], run="training", force=True)
                if name.startswith("data/"):
                    parts.remove_data(self.fleet, "training", 0, hashed)
                self.assertEqual(files_of(outside), before)
                os.unlink(place)
                os.rename(outside, place)

    def test_a_folder_with_something_else_in_its_places_ends_with_a_sentence(self):
        nested = "[" * 900 + "]" * 900
        for name, text in (("nested", '{"format": ' + nested + "}"), ("deep", "[" * 100000), ("text", "x")):
            with self.subTest(name):
                os.makedirs(self.path(name))
                with open(self.path(f"{name}/acltape_fleet.json"), "w") as file:
                    file.write(text)
                with self.assertRaisesRegex(Failure, "names no format, and this acltape writes 1"):
                    self.add(self.training, fleet=self.path(name))
        os.makedirs(self.path("fifo"))
        os.mkfifo(self.path("fifo/acltape_fleet.json"))
        with self.assertRaisesRegex(Failure, "names no format"):
            self.add(self.training, fleet=self.path("fifo"))
        self.added(self.training)
        for make in (os.mkfifo, os.mkdir):
            make(os.path.join(self.fleet, "manifest", "steps.0.json"))
            failed, = self.failed(self.steps)
            self.assertIn("rank 0 of run 'steps' is there already, with a manifest that does not say", failed["why"])
            make(os.path.join(self.fleet, "writing", "0123456789abcdef.json"))
            self.assertEqual(parts.remove_leftovers(self.fleet), 0)
            for name in ("manifest/steps.0.json", "writing/0123456789abcdef.json"):
                path = os.path.join(self.fleet, name)
                (os.rmdir if os.path.isdir(path) else os.unlink)(path)

    def test_a_living_one_is_left_alone(self):
        folder = parts.open_folder(self.fleet)
        with parts.Part(folder, "alive", 0) as part:
            _, path = part.data_file("op", 0)
            with open(path, "w"):
                pass
            self.assertEqual(parts.remove_leftovers(folder), 0)
            self.added(self.training)
            self.assertTrue(os.path.exists(path))
        self.assertFalse(os.path.exists(path))

    def test_a_full_disk_leaves_nothing_half(self):
        self.added(self.training)
        before = files_of(self.fleet)
        patch = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))"
        done = self.in_a_process(patch, self.fleet, self.steps, code=4)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(files_of(self.fleet), before)
        patch = ("import errno\n"
                 "def full(*_): raise OSError(errno.ENOSPC, 'No space left on device')\n"
                 "write_trace._File._flush = full")
        done = self.in_a_process(patch, self.fleet, self.steps, code=4)
        self.assertIn(f"no room left on the disk of '{self.fleet}'", done.stderr)
        self.assertEqual(files_of(self.fleet), before)

    def test_a_trace_that_cannot_be_read_is_named_and_the_others_are_added(self):
        wrong = {
            "evil.db": self.changed_copy(self.training, "evil.db",
                                         "UPDATE call_row SET duration_ns = 'evil' WHERE call_id = 7"),
            "no_call.db": self.changed_copy(self.training, "no_call.db",
                                            "INSERT INTO device_span VALUES(NULL, 1, 2, 3, 4)"),
            "trigger.db": self.changed_copy(self.training, "trigger.db",
                                            "CREATE TRIGGER evil AFTER INSERT ON op BEGIN DELETE FROM op; END"),
            "short.db": self.path("short.db"), "text.db": self.path("text.db"), "absent.db": self.path("absent.db"),
        }
        with open(self.training, "rb") as file, open(wrong["short.db"], "wb") as short:
            short.write(file.read(60000))
        with open(wrong["text.db"], "w") as file:
            file.write("nothing")
        failed = self.failed(*wrong.values(), self.training)
        self.assertEqual(sorted(os.path.basename(each["trace"]) for each in failed), sorted(wrong))
        self.assertEqual({each["code"] for each in failed}, {3})
        said = {os.path.basename(each["trace"]): each["why"] for each in failed}
        self.assertIn("row 7 of its table call_row has duration_ns 'evil', where a whole number", said["evil.db"])
        self.assertIn("has no call_id", said["no_call.db"])
        self.assertIn("trigger", said["trigger.db"])
        self.assertIn("damaged or truncated", said["short.db"])
        self.assertEqual(os.listdir(os.path.join(self.fleet, "manifest")), ["training.0.json"])
        self.assertGreater(self.holds(self.training, "training", 0), 8)
        self.assertEqual({path.split("/")[2] for path in files_of(self.fleet) if path.startswith("data/")},
                         {"run=training"})

    def test_traces_of_odd_contents_are_added_as_they_are(self):
        most = (1 << 63) - 1
        for number, statement in enumerate((
                "DELETE FROM call_row", "DELETE FROM meta", "INSERT INTO step VALUES(0, NULL, NULL, NULL)",
                f"INSERT INTO call_row(call_id) VALUES({most})", f"INSERT INTO call_row(call_id) VALUES({-most - 1})",
                f"INSERT INTO step VALUES({-most}, {-most}, {most}, 'x')")):
            with self.subTest(statement):
                trace = self.changed_copy(
                    self.training, "odd.db", "INSERT INTO call_extra(call_id, status) VALUES(5, 1)", statement)
                self.added(trace, run=str(number))
                self.holds(trace, str(number), 0)

    def test_a_trace_that_is_being_recorded_is_refused(self):
        with open("/proc/self/stat") as file:
            start = file.read().rsplit(")", 1)[1].split()[19]
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        trace = self.changed_copy(
            self.training, "recording.db", "UPDATE meta SET value = 'recording' WHERE key = 'state'",
            f"UPDATE meta SET value = '{os.getpid()}' WHERE key = 'collector_pid'",
            f"UPDATE meta SET value = '{start}' WHERE key = 'collector_start'",
            f"UPDATE meta SET value = '{boot}' WHERE key = 'collector_boot'")
        failed, = self.failed(trace)
        self.assertIn("is still being recorded", failed["why"])

    def test_a_trace_that_changes_meanwhile_is_refused(self):
        trace = self.changed_copy(self.training, "changing.db")
        told = []

        def touch(*_):
            told.append(os.utime(trace, (1, 1)))

        answers = list(add_traces.answers(self.fleet, [trace], progress=touch))
        self.assertIn("was changed while it was read", answers[0]["failed"]["why"])
        self.assertFalse([path for path in files_of(self.fleet) if path.startswith("data/")])

    def test_a_process_that_is_killed_is_told_and_the_others_go_on(self):
        trace = self.changed_copy(self.training, "first.db")
        patch = ("add_traces._WORK = 'import os, signal, sys; sys.path[:] = eval(sys.argv[1]); "
                 "from acltape.fleet import add_traces, parts; commit = parts.Part.commit; "
                 "parts.Part.commit = lambda part, said: os.kill(os.getpid(), signal.SIGKILL) "
                 "if part.run == \"first\" else commit(part, said); add_traces.work()'")
        done = self.in_a_process(patch, self.fleet, trace, self.training, code=4)
        self.assertIn("ended by signal 9; 1 of 2 traces were not added", done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.fleet, "manifest")), ["training.0.json"])
        self.assertEqual(files_of(os.path.join(self.fleet, "writing")), [])


class AddCommand(FleetTest):
    def fleet_add(self, *words, code=0, **environment):
        environment = {**os.environ, "ACLTAPE_PYTHON": sys.executable, **environment}
        return self.acltape("fleet", "add", *words, code=code, env=environment)

    def test_the_command_shows_each_part(self):
        done = self.fleet_add(self.fleet, self.training, "--name", "night", "--format", "json")
        row, = json.loads(done.out)
        self.assertEqual((row["run"], row["rank"], row["calls"]), ("night", 0, 3276))
        self.assertGreater(self.holds(self.training, "night", 0), 8)
        self.assertIn(f"next: acltape fleet report {self.fleet}", self.fleet_add(
            self.fleet, self.steps).err)
        self.assertIn("rank 0 of run 'steps' is there already", self.fleet_add(self.fleet, self.steps, code=2).err)
        self.fleet_add(self.fleet, self.steps, "--force")

    def test_a_rank_and_a_label_are_those_of_the_part(self):
        self.fleet_add(self.fleet, self.training, "--rank", "7", "--label", "decoder, left")
        part, = Folder(self.fleet).parts
        self.assertEqual((part.run, part.rank, part.label), ("training", 7, "decoder, left"))
        self.assertIn("--rank names the rank of one trace", self.fleet_add(
            self.fleet, self.training, self.steps, "--rank", "7", code=2).err)

    def test_what_a_killed_recorder_had_received_is_added(self):
        """The program and its recorder are killed together: most calls lie in the spool beside the trace."""
        trace, count = self.path("killed.db"), self.path("count")
        recorder = subprocess.Popen(
            [BINARY, "record", "--quiet", "-o", trace, "--payload", "all", "--ring-size", "65536", "--threads", "8",
             "--", COUNTED_CALLS, count, "0", "0"], stdin=subprocess.DEVNULL, start_new_session=True)

        def counted():
            try:
                with open(count, "rb") as file:
                    return sum(struct.unpack("<2Q", file.read(16)))
            except (OSError, struct.error):
                return 0
        end = time.monotonic() + 60
        while counted() < 5000 and time.monotonic() < end:
            time.sleep(0.01)
        os.killpg(recorder.pid, signal.SIGKILL)
        recorder.wait()
        while not os.path.exists(trace + ".spool") and time.monotonic() < end:
            time.sleep(0.01)
        self.assertGreaterEqual(counted(), 5000)
        with self.assertRaisesRegex(fleet.Failure, "was killed, and what it had received lies in '.*killed.db.spool'; "
                                                   "`acltape info .*killed.db` takes it into the trace"):
            fleet.add(self.fleet, [trace])
        done = self.fleet_add(self.fleet, trace, "--format", "json")
        self.assertIn("was killed", done.err)
        row, = json.loads(done.out)
        self.assertGreaterEqual(row["calls"], counted())
        self.assertGreater(self.holds(trace, "killed", 0), 5)

    def test_a_pattern_that_fits_nothing_makes_no_folder(self):
        done = self.fleet_add(self.path("new"), "none*.db", "neither*.db", code=3)
        self.assertIn("there is no trace 'none*.db', nor one of the other 1", done.err)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_each_trace_that_is_not_added_is_named(self):
        done = self.fleet_add(self.fleet, "absent.db", self.training, "nowhere.db", code=3)
        self.assertIn("there is no trace 'absent.db'", done.err)
        self.assertIn("there is no trace 'nowhere.db'", done.err)
        self.assertIn("2 of 3 traces were not added", done.err)
        self.assertIn("training", done.out)

    def test_a_mistake_ends_with_a_sentence(self):
        self.assertIn("name a folder and the traces", self.fleet_add(self.fleet, code=2).err)
        self.assertIn("cannot be the name of a run", self.fleet_add(
            self.fleet, self.training, "--name", "a/b", code=2).err)
        asked = self.acltape("fleet", "ask", self.fleet, "SELECT 1", "--force", code=2)
        self.assertIn("--force is of fleet add, and of fleet report with -o", asked.err)
        self.assertFalse(os.path.exists(self.fleet))

    def test_a_missing_package_is_named(self):
        """An interpreter that imports nothing but what comes with it."""
        python = self.path("bare_python")
        with open(python, "w") as file:
            file.write(f"#!/bin/sh\nexec {sys.executable} -I -S \"$@\"\n")
        os.chmod(python, 0o755)
        done = self.fleet_add(self.fleet, self.training, code=4, ACLTAPE_PYTHON=python)
        self.assertIn("needs the Python package pyarrow", done.err)
        self.assertIn("-m pip install pyarrow", done.err)


if __name__ == "__main__":
    main()
