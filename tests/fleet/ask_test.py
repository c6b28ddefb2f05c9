#!/usr/bin/env python3
"""`acltape fleet ask`: answers, their head, and its errors; and the programs of docs/fleets.md."""
import csv
import io
import json
import os
import re
import subprocess
import sys

import packages

packages.enter()
import made_fleet  # noqa: E402
import slow_writer  # noqa: E402
from harness import BINARY, SOURCE, CommandTest, main, run  # noqa: E402

QUESTION = "SELECT rank, count(*) AS calls FROM call_row GROUP BY rank ORDER BY rank"


class Ask(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        one = cls("test_an_answer_is_a_table")
        trace = one.path("t.db")
        subprocess.run([os.path.join(os.path.dirname(BINARY), "synthetic_trace_file"), trace, "2000"], check=True,
                       capture_output=True)
        for rank in range(2):
            slow_writer.write(one.path("DIR"), trace, "night", rank)
            slow_writer.write(one.path("bad"), trace, "night", rank)
        os.remove(one.path("bad/manifest/night.1.json"))
        with open(one.path("bad/manifest/night.1.json"), "w") as file:
            file.write("{")

    def fleet(self, *words, code=0):
        return self.acltape("fleet", *words, code=code, cwd=self.folder,
                            env={**os.environ, "ACLTAPE_PYTHON": sys.executable})

    def ask(self, *words, code=0):
        return self.fleet("ask", *words, code=code)

    def test_an_answer_is_a_table(self):
        self.assertRegex(self.ask("DIR", QUESTION).out, r"rank +calls\n[- ]+\n +0 +\d+\n +1 +\d+\n")
        self.assertEqual(len(self.ask("DIR", "top_ops", "--limit", "3", "--format", "csv").out.splitlines()), 4)
        self.assertEqual(self.ask("DIR", "SELECT CAST('nan' AS DOUBLE) AS a, NULL AS b, true AS c, 1.5 AS d, [1] AS e",
                                  "--format", "csv").out, "a,b,c,d,e\nnan,,1,1.5,[1]\n")
        self.ask("DIR", QUESTION, "--memory", "200M", "--threads", "1")

    def test_the_head_says_what_was_left_out(self):
        said = self.ask("bad", QUESTION, "--format", "json")
        answer = json.loads(said.out)
        self.assertEqual(answer["left_out"], [{"part": "manifest/night.1.json", "reason": "it is no JSON"}])
        self.assertEqual([row["rank"] for row in answer["answer"]], [0])
        self.assertIn("it is no JSON", self.ask("bad", QUESTION).out)
        rows = self.ask("bad", QUESTION, "--format", "csv")
        self.assertEqual([row["rank"] for row in csv.DictReader(io.StringIO(rows.out))], ["0"])
        self.assertEqual(rows.err, "acltape: left out: manifest/night.1.json: it is no JSON\n")

    def test_a_report_answers_the_prepared_questions_in_words(self):
        made_fleet.write(self.path("slow"), "night", ranks=4, steps=10, slow_op=(3, "aclnnMatmul", 1.4))
        answers = json.loads(self.fleet("report", "slow", "--format", "json").out)["answer"]
        told = {row["name"]: row for row in answers}
        self.assertRegex(told["slow_ranks"]["answer"], r"^Rank 3 of run night takes [\d.]+ ms for a step, [\d.]+ % m")
        self.assertRegex(told["slow_ranks"]["next"], r"^acltape query /traces/night.rank3.db --calls step:\d+ --name")
        self.assertEqual((told["rank_memory"]["answer"], told["rank_memory"]["next"]),
                         ("All ranks of a role use the same memory.", None))
        self.assertTrue(told["regression"]["answer"].startswith("Not known: "))
        listed = json.loads(self.fleet("questions", "--format", "json").out)["answer"]
        self.assertEqual({row["name"] for row in listed}, set(told))

    def test_errors_are_one_sentence(self):
        for words, said in ((("nowhere", QUESTION), "there is no folder"), (("DIR", "no_such"), "no view or table"),
                            (("DIR", "SELECT nope FROM call"), "nope"), (("DIR", "DROP VIEW call"), "one SELECT"),
                            (("DIR",), "needs a question"), ((".", QUESTION), "is no folder of fleet tables")):
            with self.subTest(words=words):
                self.assertSentence(self.ask(*words, code=2), said)
        for words, said in ((("report",), "name the folder"), (("questions", "DIR"), "takes no folder"),
                            (("report", "DIR", "top_ops"), "takes no other")):
            with self.subTest(words=words):
                self.assertSentence(self.fleet(*words, code=2), said)

    def test_doctor_says_which_packages_are_here(self):
        def rows(python):
            said = run(BINARY, "doctor", "--format", "json", env={**os.environ, "ACLTAPE_PYTHON": python})
            return {row["subject"]: row for row in json.loads(said.out)}

        row = rows(sys.executable)["fleets"]
        self.assertEqual((row["state"], row["remedy"]), ("ok", ""), row)
        self.assertIn(f"duckdb {packages.VERSIONS['duckdb']}", row["found"])
        row = rows(self.bare_python())["fleets"]
        self.assertEqual((row["state"], row["remedy"]), ("info", f"{sys.executable} -m pip install pyarrow duckdb"))
        self.assertIn("no duckdb", row["found"])

    def bare_python(self):
        """An interpreter without packages."""
        bare = self.path("bare python")
        with open(bare, "w") as file:
            file.write(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        os.chmod(bare, 0o755)
        return bare

    def test_without_the_packages_it_says_what_to_install(self):
        result = self.acltape("fleet", "ask", self.path("DIR"), QUESTION, code=4,
                              env={**os.environ, "ACLTAPE_PYTHON": self.bare_python()})
        self.assertSentence(result, "needs the Python package pyarrow", "-m pip install pyarrow")

    def test_each_program_and_command_of_the_page_runs(self):
        with open(os.path.join(SOURCE, "docs", "fleets.md")) as file:
            page = file.read()
        for program in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=self.folder,
                                  env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python")})
            self.assertEqual(done.returncode, 0, done.stderr)
        commands = re.findall(r"^\$ (acltape fleet (?:ask|report|questions).*)$", page, re.MULTILINE)
        self.assertGreaterEqual(len(commands), 2)
        for command in commands:
            self.reproduces(command, code=0, cwd=self.folder, env={**os.environ, "ACLTAPE_PYTHON": sys.executable})

    def test_each_cell_of_the_notebook_runs(self):
        made_fleet.write(self.path("made"), "night", ranks=4, steps=8, slow_op=(3, "aclnnMatmul", 1.4))
        with open(os.path.join(SOURCE, "docs", "fleets.ipynb")) as file:
            cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
        # The last line of a cell is what a notebook shows of it.
        told = "print(slow[slow.finding == 1].to_dict('list'))"
        program = "\n".join([*("".join(cell["source"]) for cell in cells), told])
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python"), "ACLTAPE_FLEET": "made"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Nothing was left out", done.stdout)
        self.assertIn("'rank': [3]", done.stdout)


if __name__ == "__main__":
    main()
