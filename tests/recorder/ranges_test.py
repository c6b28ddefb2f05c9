#!/usr/bin/env python3
"""Programs mark ranges and steps themselves, in C and in Python; the Python module reads traces."""
import os
import shutil
import sqlite3
import struct
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, "tests", "cli"), os.path.join(SOURCE, "python")]
import acltape  # noqa: E402
from harness import TORCH_PYTHON, CommandTest, main  # noqa: E402

MARKED = """
import threading
import torch
import acltape
assert acltape.recorded() == RECORDED
x = torch.ones(4, 4)
for _ in range(3):
    with acltape.step():
        y = x @ x
        with acltape.range("inner é"):
            y = y.tanh()
    x = y + 1
@acltape.range("decorated")
def work():
    return x.sin()
work()
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
try:
    with acltape.range("failing"):
        raise KeyError
except KeyError:
    pass
for wrong in (3, "a\\0b"):
    try:
        with acltape.range(wrong):
            raise SystemExit("accepted")
    except (TypeError, ValueError) as error:
        print(error)
print("done")
"""


class Ranges(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["PYTHONPATH"] = os.path.join(SOURCE, "python")

    def marked(self, recorded):
        return self.script(MARKED.replace("RECORDED", str(recorded)))

    def test_python_program_runs_the_same_without_a_recorder(self):
        alone = subprocess.run([TORCH_PYTHON, self.marked(False)], capture_output=True, text=True)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        trace = self.path("same.db")
        recorded = self.record(trace, TORCH_PYTHON, self.marked(True))
        self.assertEqual(recorded.out, alone.stdout)
        self.assertIn("the name of a range is a text, not int", alone.stdout)

    def test_marked_steps_are_the_steps_of_the_trace(self):
        trace = self.path("steps.db")
        self.record(trace, TORCH_PYTHON, self.marked(True))
        connection = sqlite3.connect(trace)
        steps = connection.execute("SELECT step, found_by FROM step_summary").fetchall()
        self.assertEqual(steps, [(i, "range:acltape.step") for i in range(3)])
        ops = connection.execute("SELECT op FROM call WHERE step = 1 AND leaf ORDER BY call_id").fetchall()
        self.assertEqual(ops, [("aten::mm",), ("aten::tanh",)])
        paths = connection.execute(
            "SELECT DISTINCT path FROM call JOIN scope USING (scope_id) WHERE op = 'aten::tanh'").fetchall()
        self.assertEqual(paths, [("acltape.step/inner é",)])
        decorated = connection.execute(
            "SELECT count(DISTINCT thread_id), count(*) FROM call JOIN scope USING (scope_id) "
            "WHERE op = 'aten::sin' AND path = 'decorated'").fetchone()
        self.assertEqual(decorated, (3, 3))

    def test_other_ranges_can_be_named_as_steps(self):
        trace = self.path("other.db")
        self.record(trace, TORCH_PYTHON, self.marked(True), options=["--steps-from", "inner*"])
        steps = sqlite3.connect(trace).execute("SELECT found_by FROM step_summary").fetchall()
        self.assertEqual(steps, [("range:inner é",)] * 3)

    def test_c_program_marks_ranges_without_a_library(self):
        program = os.path.join(SOURCE, "tests", "recorder", "ranges_program.c")
        for compiler, options in (("cc", ["-std=gnu99"]), ("c++", ["-x", "c++", "-std=c++11"])):
            with self.subTest(compiler):
                binary = self.path(compiler.replace("+", "x"))
                built = subprocess.run([compiler, *options, "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}", program,
                                        "-o", binary, "-ldl"], capture_output=True, text=True)
                self.assertEqual(built.returncode, 0, built.stderr)
                self.assertEqual(subprocess.run([binary], capture_output=True, text=True).stdout, "done\n")
                trace = binary + ".db"
                self.assertEqual(self.record(trace, binary, payload="none",
                                             options=["--keep-empty"]).out, "done\n")
                ranges = sqlite3.connect(trace).execute(
                    "SELECT path, count(*) FROM scope_range JOIN scope USING (scope_id) GROUP BY path").fetchall()
                self.assertEqual(sorted(ranges), [("acltape.step", 3), ("acltape.step/inner", 3)])


class Reader(CommandTest):
    def test_calls_have_lines_and_are_picked_by_step_and_operator(self):
        os.environ["PYTHONPATH"] = os.path.join(SOURCE, "python")
        script = self.script(MARKED.replace("RECORDED", "True"))
        path = self.path("read it #1.db")
        self.record(path, TORCH_PYTHON, script)
        with acltape.Trace(path) as trace:
            self.assertEqual(trace.meta()["state"], "complete")
            calls = trace.calls(step=1)
            ops = [call["op"] for call in calls] if isinstance(calls, list) else list(calls["op"])
            self.assertEqual(ops, ["aten::mm", "aten::tanh"])
            sines = trace.calls(op="aten::sin")
            self.assertEqual(len(sines), 3)
            first = sines[0] if isinstance(sines, list) else sines.iloc[0]
            self.assertEqual((first["file"], first["function"]), (script, "work"))
            self.assertEqual(len(trace.query("SELECT * FROM call WHERE op = ?", ("aten::mm",))), 3)
            with self.assertRaises(sqlite3.OperationalError):
                trace.query("DELETE FROM meta")

    def test_what_is_no_trace_is_refused(self):
        with self.assertRaisesRegex(FileNotFoundError, "there is no trace"):
            acltape.Trace(self.path("none.db"))
        text = self.path("text.db")
        with open(text, "w") as file:
            file.write("not a database, " * 100)
        with self.assertRaisesRegex(ValueError, "is no trace of acltape"):
            acltape.Trace(text)
        sqlite3.connect(self.path("other.db")).execute("CREATE TABLE t(a)")
        with self.assertRaisesRegex(ValueError, "is no trace of acltape"):
            acltape.Trace(self.path("other.db"))

    def test_no_file_beside_a_trace_makes_sqlite_touch_another_file(self):
        trace, mine = self.path("t.db"), self.path("mine")
        connection = sqlite3.connect(trace)
        connection.executescript(f"PRAGMA application_id = {0x41434C54}; CREATE TABLE meta(key, value)")
        page, = connection.execute("PRAGMA page_size").fetchone()
        connection.close()
        magic, name = bytes.fromhex("d9d505f920a163d7"), mine.encode()
        head = (magic + struct.pack(">IIIII", 0, 1, 2, 512, page)).ljust(512, b"\0")
        super_journal = (head + struct.pack(">I", 0x40000000 // page + 1) + name
                         + struct.pack(">II", len(name), sum(name)) + magic)

        def write(path):
            with open(path, "wb") as file:
                file.write(super_journal)

        cases = [(write, "-journal", "names another file, which SQLite would remove"),
                 (os.mkfifo, "-journal", "is no plain file")]
        for side in ("-wal", "-shm", "-journal"):
            cases += [(lambda path: os.symlink(mine, path), side, "is a link to another file"),
                      (lambda path: os.link(mine, path), side, "a hard link")]
        for make, side, says in cases:
            with self.subTest(says, side=side):
                with open(mine, "w") as file:
                    file.write("the user's")
                make(trace + side)
                with self.assertRaisesRegex(ValueError, says):
                    acltape.Trace(trace)
                with open(mine) as file:
                    self.assertEqual(file.read(), "the user's")
                os.unlink(trace + side)
        acltape.Trace(trace).close()

    def test_a_trace_whose_writer_was_killed_names_the_command_that_mends_it(self):
        whole, trace = self.path("whole.db"), self.path("killed.db")
        holder = sqlite3.connect(whole, isolation_level=None)
        holder.executescript(f"PRAGMA application_id = {0x41434C54}; CREATE TABLE meta(key, value); "
                             "INSERT INTO meta VALUES('state', 'complete')")
        for text in ("PRAGMA cache_size=1", "PRAGMA cache_spill=1", "BEGIN IMMEDIATE",
                     "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
                     "INSERT INTO meta SELECT i, zeroblob(1000) FROM n"):
            holder.execute(text)
        for name in ("", "-journal"):
            shutil.copy(whole + name, trace + name)
        holder.rollback()
        holder.close()
        with self.assertRaisesRegex(ValueError, f"acltape info {trace}"):
            acltape.Trace(trace)


if __name__ == "__main__":
    main()
