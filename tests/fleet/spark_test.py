#!/usr/bin/env python3
"""Spark gives the answers that DuckDB gives, alone and on a cluster, and refuses what reads something else."""
import decimal
import glob
import math
import os
import re
import shutil
import subprocess
import sys

import packages

if shutil.which("java") is None:
    print("skipped: no java; scripts/setup installs default-jre-headless")
    sys.exit(packages.SKIPPED)
packages.enter(packages.SPARK, "venv-spark")
import made_fleet  # noqa: E402
import slow_writer  # noqa: E402
import spark_cluster  # noqa: E402
from harness import BINARY, SOURCE, TORCH_PYTHON, WORKLOADS, CommandTest, main  # noqa: E402

from acltape import fleet, frames  # noqa: E402
from acltape.fleet import questions, spark_engine, sql  # noqa: E402
from acltape.fleet.duckdb_engine import QuestionError  # noqa: E402
from acltape.fleet.tables import TABLES  # noqa: E402

BIN = os.path.dirname(BINARY)
COUNTS = "SELECT rank, count(*) AS calls, sum(duration_ns) AS ns FROM call GROUP BY rank ORDER BY rank"
LOCAL = {"engine": "spark", "master": "local[2]", "memory": "2GB"}
PLANTED = {"slow_link": (2, 4), "late_rank": 1, "slow_op": (3, "aclnnMatmul", 1.4), "parting": (2, 7),
           "other_order": (2, 9), "without_graphs": 0, "more_memory": 3}
# Each would read, write, set or start something else than the folder's tables.
REFUSED = """SELECT * FROM parquet.`{file}`
SELECT * FROM csv.`{outside}`
SELECT * FROM text.`{outside}`
SELECT * FROM IDENTIFIER('csv.`{outside}`')
SELECT * FROM `{outside}`
SELECT reflect('java.lang.System', 'getenv', 'HOME')
SELECT java_method('java.lang.System', 'getProperty', 'user.home')
SELECT try_reflect('java.lang.System', 'getProperty', 'user.home')
SELECT system.builtin.reflect('java.lang.System', 'getProperty', 'user.home')
SELECT run FROM part WHERE run = builtin.java_method('java.lang.System', 'getProperty', 'user.home')
SELECT xpath_string('<a/>', '/a')
SELECT from_avro(x'00', '"int"')
SELECT from_protobuf(x'00', 'A', '{outside}')
SELECT input_file_name()
SELECT current_user()
SELECT * FROM python_worker_logs()
SELECT * FROM read_csv('{outside}')
SELECT TRANSFORM(run) USING 'cat > {written}' AS (a) FROM part
FROM part MAP run USING 'cat > {written}' AS a
WITH x AS (SELECT TRANSFORM(run) USING 'cat > {written}' AS (a) FROM part) SELECT * FROM x
SELECT (SELECT max(a) FROM (SELECT TRANSFORM(run) USING 'cat > {written}' AS (a) FROM part))
SELECT run FROM part WHERE run IN (SELECT TRANSFORM(run) USING 'cat > {written}' AS (a) FROM part)
SELECT * FROM stream s
SELECT 1; SELECT 2
BEGIN SELECT 1; END
EXECUTE IMMEDIATE 'SELECT 1'
INSERT OVERWRITE DIRECTORY '{written}' USING parquet SELECT 1
INSERT INTO part SELECT 1
WITH x AS (SELECT 1 AS a) INSERT INTO part SELECT a FROM x
FROM part INSERT INTO part SELECT run
CREATE TABLE x USING parquet LOCATION '{written}' AS SELECT 1
CREATE TEMPORARY VIEW x USING csv OPTIONS (path '{outside}')
CREATE VIEW x AS SELECT 1
DROP VIEW call_row
SET spark.sql.runSQLOnFiles = true
RESET
ADD JAR '{outside}'
ADD FILE '{outside}'
LIST JARS
LOAD DATA INPATH '{outside}' INTO TABLE x
CACHE TABLE x AS SELECT 1
CREATE FUNCTION f AS 'java.lang.System'
CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN 1
DECLARE VARIABLE v INT DEFAULT 1
DESCRIBE call_row
EXPLAIN SELECT 1
SHOW TABLES
USE default
CALL system.run()
SELECT
SELEC 1
SELECT nope FROM call
SELECT * FROM no_such_table
no_such_view""".splitlines()
# Questions that are more than a view.
ALLOWED = """SELECT 'it''s' AS text, "run" FROM part WHERE '${env:HOME}' LIKE '%env%'
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT max(i) AS i, sum(i) AS s FROM n
SELECT run, rank, count(*) FILTER (WHERE (bits & 4) <> 0) AS leaves FROM call_row GROUP BY ALL HAVING count(*) > 1
SELECT c.rank, max(d.step) AS step FROM call_row c, (SELECT step FROM step_summary) d GROUP BY c.rank ORDER BY 1 LIMIT 2
SELECT run FROM part UNION SELECT label FROM part EXCEPT SELECT 'x'
SELECT rank, row_number() OVER w AS place FROM part WINDOW w AS (ORDER BY rank DESC)
SELECT DISTINCT first_value(rank) OVER (ORDER BY rank) AS first FROM part WHERE rank IN (SELECT rank FROM call)
SELECT run, rank, sentence FROM lacking
SELECT count(*) AS tables FROM stream_row""".splitlines()


def plain(value):
    """A cell without the type that an engine gave it."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else float(value)
    return value


def order(row):
    return [(cell is not None, f"{cell:.6e}" if isinstance(cell, (int, float)) else repr(cell)) for cell in row]


def same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and (
            math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (one != one and other != other))
    return one == other


class SparkTest(CommandTest):
    """`made` is a fleet with planted faults, `recorded` one of traces."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        one = cls("path")
        cls.made = one.path("made")
        for day, night in enumerate(("monday", "007")):
            made_fleet.write(cls.made, night, ranks=4, steps=10, seed=day, recorded=f"2026-01-0{day + 1}",
                             **(PLANTED if day else {}))

    def rows(self, opened, question):
        table = opened.arrow(question)
        rows = [tuple(map(plain, row)) for row in zip(*(column.to_pylist() for column in table.columns))]
        return table.column_names, sorted(rows, key=order)

    def compare(self, duckdb, spark, question):
        """How many rows both engines answer."""
        names, expected = self.rows(duckdb, question)
        found_names, found = self.rows(spark, question)
        with self.subTest(question=question):
            self.assertEqual(found_names, names)
            self.assertEqual(len(found), len(expected))
            for mine, theirs in zip(found, expected):
                differing = [name for name, one, other in zip(names, mine, theirs) if not same(one, other)]
                self.assertFalse(differing, f"\nSpark  {mine}\nDuckDB {theirs}")
        return len(expected)

    def compare_all(self, folder, options, asked):
        """The questions that have rows."""
        with fleet.open(folder) as duckdb, fleet.open(folder, **options) as spark:
            filled = {question for question in asked if self.compare(duckdb, spark, question)}
            self.assertEqual(spark.head, duckdb.head)
        return filled


class Answers(SparkTest):
    def test_each_view_and_prepared_question_over_planted_faults_is_as_with_duckdb(self):
        filled = self.compare_all(self.made, LOCAL, [*sql.VIEWS, *TABLES, "part", *ALLOWED])
        self.assertGreaterEqual(filled, {*questions.ALL, "part", "meeting", "message", "call", "device_use"})
        with fleet.open(self.made, **LOCAL) as opened:
            self.assertEqual(opened.arrow("SELECT DISTINCT run FROM call_row ORDER BY run").to_pylist(),
                             [{"run": "007"}, {"run": "monday"}])
            self.assertEqual(opened.arrow("call", limit=5).num_rows, 5)
            report = [answer for name in questions.ALL for answer in questions.answers(opened, name)]
        with fleet.open(self.made) as opened:
            self.assertEqual(report, [answer for name in questions.ALL for answer in questions.answers(opened, name)])

    def test_each_view_over_recorded_traces_is_as_with_duckdb(self):
        traces = {}
        for name, words in (("serving", ["600", "--acl"]), ("both_levels", ["--graphs", "3", "20", "5", "--both"])):
            traces[name] = self.path(f"{name}.db")
            subprocess.run([os.path.join(BIN, "synthetic_trace_file"), traces[name], *words], check=True,
                           capture_output=True)
        traces["ranks"] = self.path("ranks.db")
        self.record(traces["ranks"], os.path.join(BIN, "two_ranks"), options=["--soft", "--device-times"])
        if TORCH_PYTHON is not None:
            traces["torch"] = self.path("torch.db")
            self.record(traces["torch"], TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"), payload="digest",
                        options=["--stacks", "top", "--modules"])
            traces["no_totals"] = self.changed_copy(
                traces["torch"], "no_totals.db", "DELETE FROM table_total", "DELETE FROM signature_total",
                "DELETE FROM step_total WHERE step > 1", "DELETE FROM host_gap")
        for rank, trace in enumerate(traces.values()):
            slow_writer.write(self.path("recorded"), trace, "night", rank)
        filled = self.compare_all(self.path("recorded"), LOCAL, sql.VIEWS)
        if TORCH_PYTHON is not None:
            # No message goes from one of these traces to another.
            self.assertGreaterEqual(filled, set(sql.VIEWS) - set(questions.ALL) - {"message"})

    def test_each_command_of_the_page_runs(self):
        with open(os.path.join(SOURCE, "docs", "fleets.md")) as file:
            commands = re.findall(r"^(acltape fleet .*--engine spark.*)$", file.read(), re.MULTILINE)
        self.assertEqual(len(commands), 3)
        for command in commands:
            done = self.reproduces(command.replace("DIR", "made"), code=0, cwd=self.folder,
                                   env={**os.environ, "ACLTAPE_PYTHON": sys.executable})
            self.assertEqual(done.err, "", done)


class Cluster(SparkTest):
    def test_two_workers_answer_as_duckdb_does(self):
        with spark_cluster.Cluster() as cluster:
            options = {"engine": "spark", "master": cluster.url, "memory": "600MB"}
            asked = ["slow_ranks", "waits", "parted_replicas", "call_location", COUNTS]
            self.assertEqual(self.compare_all(self.made, options, asked), {*asked})
            done = subprocess.run([sys.executable, "-m", "acltape.fleet.ask", self.made, COUNTS, "--engine", "spark",
                                   "--master", cluster.url], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python")})
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertEqual(len(done.stdout.splitlines()), 5, done.stdout)


class Refusals(SparkTest):
    """One session asks over one folder."""

    def file_of(self, folder, run="007", rank=1):
        return glob.glob(os.path.join(glob.escape(folder), "data", "call_row", f"run={run}", f"rank={rank}", "**",
                                      "*.parquet"), recursive=True)[0]

    def test_what_is_no_question_over_the_folder_is_refused(self):
        outside, written = self.path("outside.csv"), self.path("written")
        with open(outside, "w") as file:
            file.write("a\n1\n")
        before = sorted(os.listdir("."))
        with fleet.open(self.made, **LOCAL) as opened:
            for question in REFUSED:
                question = question.format(outside=outside, written=written, file=self.file_of(self.made))
                with self.subTest(question=question), self.assertRaises(QuestionError) as raised:
                    print(question, opened.arrow(question).to_pylist())
                self.assertNotRegex(str(raised.exception), r"\n|org\.apache|\tat ")
            self.assertEqual(len(opened.arrow(COUNTS)), 4)
        self.assertFalse(os.path.exists(written))
        self.assertEqual(sorted(os.listdir(".")), before)

    def test_a_function_that_a_question_may_call_neither_calls_java_nor_reads_a_file(self):
        """What Spark has for a question, by the class that does it."""
        session = spark_engine.Session("local[1]", "1GB")
        try:
            state = session._spark._jsparkSession.sessionState()
            classes = {registry.lookupFunction(name).get().getClassName()
                       for registry in (state.functionRegistry(), state.tableFunctionRegistry())
                       for name in spark_engine._listed(registry.listFunction())}
        finally:
            session.close()
        self.assertGreater(len(classes), 300)
        self.assertEqual([name for name in classes if any(word in name for word in (
            "Reflect", "Avro", "Protobuf", "Xml", "XPath", "InputFile", "Python", "CurrentUser"))], [])

    def test_files_that_are_not_as_they_should_be_are_left_out_by_name(self):
        folder = self.path("run=9 [1] {a} %41 *")
        shutil.copytree(self.made, folder)
        with fleet.open(folder, **LOCAL) as opened:
            everything = opened.arrow(COUNTS).to_pylist()
            # The folder was judged; the damage comes after that, and Spark finds it.
            with open(self.file_of(folder, rank=1), "r+b") as file:
                file.seek(40)
                file.write(b"\xff" * 400)
            os.remove(self.file_of(folder, rank=2))
            answer = opened.arrow("SELECT run, rank, sum(call_id) AS ids FROM call_row GROUP BY ALL").to_pylist()
            self.assertEqual(len(answer), 6, opened.head)
            self.assertEqual({name for name, _ in opened.folder.left_out}, {"rank 1 of run 007", "rank 2 of run 007"})
            self.assertEqual([row for row in opened.arrow(COUNTS).to_pylist() if row["rank"] in (0, 3)],
                             [row for row in everything if row["rank"] in (0, 3)])

    def test_what_does_not_start_says_so_in_a_sentence(self):
        for options, words in (({"master": "mesos://x"}, "no master of Spark"), ({"memory": "1x"}, "no size of memory"),
                               ({"memory": "100M"}, "needs 512 MiB at least")):
            with self.subTest(options=options), fleet.open(self.made, **{**LOCAL, **options}) as opened:
                with self.assertRaisesRegex(QuestionError, words):
                    opened.arrow(COUNTS)
        with self.assertRaisesRegex(QuestionError, "no engine 'hive'"):
            fleet.open(self.made, engine="hive")
        with self.assertRaisesRegex(QuestionError, "a master is of Spark"):
            fleet.open(self.made, master="local[1]")

    def test_without_java_or_the_package_it_says_what_to_install(self):
        before = dict(os.environ)
        os.environ.update(PATH=self.path("nowhere"), JAVA_HOME="")
        try:
            with fleet.open(self.made, **LOCAL) as opened, self.assertRaisesRegex(frames.Missing, "default-jre-head"):
                opened.arrow(COUNTS)
        finally:
            os.environ.clear()
            os.environ.update(before)
        code = ("import sys; sys.modules['pyspark'] = None; from acltape.fleet import ask; "
                f"sys.argv = ['ask', {self.made!r}, 'part', '--engine', 'spark']; sys.exit(ask.main())")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python")})
        self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)
        self.assertIn("-m pip install pyspark", done.stderr)


if __name__ == "__main__":
    main()
