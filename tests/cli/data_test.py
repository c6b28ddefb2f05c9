#!/usr/bin/env python3
"""Traces as data: frames, parquet files, and the queries and programs of docs/data.md.

Frames and files need packages of an index. They are installed once into a virtual environment of the build folder; the
tests that need them are skipped when there is none.
"""
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest

from harness import BINARY, SOURCE, TORCH_PYTHON, CommandTest, main

PACKAGES = ("pandas", "polars", "pyarrow", "duckdb")
ENVIRONMENT = os.path.join(os.path.dirname(os.path.dirname(BINARY)), "venv-data")
PROGRAM = """
import torch
w = torch.ones(4, 4, requires_grad=True)
for _ in range(5):
    loss = torch.tanh(torch.mm(torch.ones(2, 4), w)).sum()
    loss.backward()
    loss.item()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
"""


def blocks_of(language):
    with open(os.path.join(SOURCE, "docs", "data.md")) as file:
        return re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)


def python_with_packages():
    """An interpreter that imports all packages; None if they cannot be installed."""
    python = os.path.join(ENVIRONMENT, "bin", "python3")
    look = [python, "-c", "import " + ", ".join(PACKAGES)]
    if os.path.exists(python) and subprocess.run(look, capture_output=True).returncode == 0:
        return python
    for words in ([sys.executable, "-m", "venv", "--clear", ENVIRONMENT],
                  [python, "-m", "pip", "install", "--quiet", *PACKAGES]):
        if subprocess.run(words, capture_output=True).returncode != 0:
            return None
    return python


class Data(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "t.db")
        cls("test_each_query_of_the_page_answers").record(cls.trace, TORCH_PYTHON, "-c", PROGRAM)
        # What a file without rows says of its columns comes from the trace.
        connection = sqlite3.connect(cls.trace)
        cls.answers = [connection.execute(query.rstrip().rstrip(";")).fetchall() for query in blocks_of("sql")]
        connection.close()

    def test_each_query_of_the_page_answers(self):
        self.assertEqual(len(self.answers), 5)
        for number, rows in enumerate(self.answers, 1):
            self.assertTrue(rows, f"question {number}")
        self.assertEqual(self.answers[3][0][:3], ("[2,4]", "[4,4]", 5))

    def test_without_pyarrow_one_sentence_says_what_to_install(self):
        result = self.acltape("export", self.trace, "--to", "parquet", "-o", self.path("none"), code=4,
                              env={**os.environ, "ACLTAPE_PYTHON": self.without_packages()})
        self.assertRegex(result.err, r"^acltape: this needs the Python package pyarrow, .*-m pip install pyarrow\n$")
        self.assertFalse(os.path.exists(self.path("none")))

    def test_options_of_programs_are_refused(self):
        result = self.acltape("export", self.trace, "--to", "parquet", "-o", self.path("p"), "--runs", "2", code=2)
        self.assertIn("--runs is of --to cpp alone", result.err)

    def without_packages(self):
        """An interpreter that finds no package of others."""
        path = self.path("bare python")
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        os.chmod(path, 0o755)
        return path


class Frames(Data):
    """What needs the packages."""

    @classmethod
    def setUpClass(cls):
        cls.python = python_with_packages()
        if cls.python is None:
            raise unittest.SkipTest("pandas, polars, pyarrow and duckdb are not here, and no package index has them")
        super().setUpClass()
        done = cls("test_each_program_of_the_page_runs").export("t.parquet")
        cls.files = {row["view"]: row["rows"] for row in done}

    def export(self, folder, *words, code=0):
        result = self.acltape("export", self.trace, "--to", "parquet", "-o", os.path.join(self.folder, folder),
                              "--format", "json", *words, code=code,
                              env={**os.environ, "ACLTAPE_PYTHON": self.python})
        return json.loads(result.out) if code == 0 else result.err

    def run_python(self, program):
        done = subprocess.run([self.python, "-c", program], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python")})
        self.assertEqual(done.returncode, 0, program + done.stdout + done.stderr)
        return done.stdout

    def test_each_program_of_the_page_runs(self):
        programs = blocks_of("python")
        self.assertEqual(len(programs), 2)
        self.assertIn("aten::mm", "".join(map(self.run_python, programs)))

    def test_files_have_the_rows_of_the_views(self):
        connection = sqlite3.connect(self.trace)
        for view, rows in self.files.items():
            self.assertEqual(connection.execute(f'SELECT count(*) FROM "{view}"').fetchone()[0], rows, view)
        connection.close()
        self.assertIn("capture_breaks", self.files)
        self.assertNotIn("payload", self.files)

    def test_duckdb_answers_the_questions_of_the_page_alike(self):
        view = blocks_of("python")[1].rsplit("print(", 1)[0]
        queries = [query.rstrip().rstrip(";") for query in blocks_of("sql")]
        asked = ("import json\n"
                 f"for query in {queries!r}:\n"
                 "    print(json.dumps(base.execute(query).fetchall(), default=float))")
        answers = [json.loads(line) for line in self.run_python(f"{view}\n{asked}").splitlines()]
        self.assertEqual(answers, [[list(row) for row in rows] for rows in self.answers])

    def test_columns_have_one_type_and_whole_numbers_stay_so(self):
        said = self.run_python(
            "import acltape, json\n"
            "t = acltape.Trace('t.db')\n"
            "p = t.pandas('call')\n"
            "q = t.polars(\"SELECT 1 AS a UNION ALL SELECT 2.5 UNION ALL SELECT NULL\")\n"
            "mixed = t.arrow(\"SELECT 1 AS a UNION ALL SELECT 'x'\")\n"
            "empty = t.arrow('SELECT step, busy_ns, op FROM call, device_use WHERE 0')\n"
            "print(json.dumps([str(p.dtypes['call_id']), str(p.dtypes['parent_id']), str(q.dtypes[0]), "
            "mixed.column(0).to_pylist(), [str(f.type) for f in empty.schema]]))")
        self.assertEqual(json.loads(said), ["int64", "Int64", "Float64", ["1", "x"], ["int64", "int64", "string"]])

    def test_a_file_is_written_again_when_a_later_batch_widens_a_type(self):
        said = self.run_python(
            "import acltape, pyarrow.parquet as parquet\n"
            "from acltape import frames\n"
            "frames.BATCH = 2\n"
            "rows = frames.Rows(acltape.Trace('t.db')._connection, 'SELECT value FROM json_each(\\'[1,2,3,4.5]\\')')\n"
            "count = frames.write_parquet(rows, 'wide.parquet')\n"
            "print(count, parquet.read_table('wide.parquet')['value'].to_pylist())")
        self.assertEqual(said, "4 [1.0, 2.0, 3.0, 4.5]\n")

    def test_what_is_in_the_folder_is_kept(self):
        self.assertIn("--force replaces", self.export("t.parquet", code=2))
        self.export("t.parquet", "--force")
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        with open(os.path.join(other, "mine.txt"), "w") as file:
            file.write("mine")
        self.assertIn("holds 'mine.txt'", self.export("other", "--force", code=2))
        self.assertEqual(os.listdir(other), ["mine.txt"])


if __name__ == "__main__":
    main()
