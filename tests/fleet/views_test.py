#!/usr/bin/env python3
"""The views over fleet tables have the rows of the views of the traces, column by column."""
import os
import re
import sqlite3
import subprocess

import packages

packages.enter()
import pyarrow.compute  # noqa: E402
import slow_writer  # noqa: E402
from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, main  # noqa: E402

from acltape import fleet  # noqa: E402
from acltape.fleet import sql  # noqa: E402
from acltape.fleet.tables import RENAMED, TABLES  # noqa: E402

BIN = os.path.dirname(BINARY)
RENAMED_IN_VIEWS = {"collective": {"rank": "communicator_rank"}}
TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "TEXT": "VARCHAR"}
# Views that no trace has: steps on the way to others, and to prepared questions.
STEPS_BETWEEN = {"base_time", "call_line", "collective_span", "list_element", "meeting", "message", "module_of_scope",
                 "on_a_device", "op_first", "op_mean", "op_name", "op_step", "op_usual", "result_digest", "role",
                 "run_order", "signature_sum"}


def comparable(row):
    return tuple("%.6f" % cell if isinstance(cell, float) else repr(cell) for cell in row)


class Views(CommandTest):
    """One folder holds a part for each kind of trace."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        one = cls("test_each_view_has_the_rows_of_the_trace")
        cls.traces = {}
        for name, words in (("training", ["3000"]), ("serving", ["2000", "--acl"]),
                            ("both_levels", ["--graphs", "3", "20", "5", "--both"])):
            cls.traces[name] = one.path(f"{name}.db")
            subprocess.run([os.path.join(BIN, "synthetic_trace_file"), cls.traces[name], *words], check=True,
                           capture_output=True)
        cls.traces["ranks"] = one.path("ranks.db")
        one.record(cls.traces["ranks"], os.path.join(BIN, "two_ranks"), options=["--soft", "--device-times"])
        if TORCH_PYTHON is not None:
            cls.traces["torch"] = one.path("torch.db")
            one.record(cls.traces["torch"], TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"),
                       options=["--stacks", "top", "--modules"])
            cls.traces["no_totals"] = one.changed_copy(
                cls.traces["torch"], "no_totals.db", "DELETE FROM table_total", "DELETE FROM signature_total",
                "DELETE FROM step_total WHERE step > 1", "DELETE FROM host_gap")
        cls.fleet = one.path("fleet")
        for rank, trace in enumerate(cls.traces.values()):
            slow_writer.write(cls.fleet, trace, "night", rank)

    def test_each_view_has_the_rows_of_the_trace(self):
        filled = set()
        with fleet.open(self.fleet) as opened:
            for view in self.views_of_traces():
                table = opened.arrow(view)
                self.assertEqual(table.column_names[:2], ["run", "rank"], view)
                for rank, (name, trace) in enumerate(self.traces.items()):
                    part = table.filter(pyarrow.compute.equal(table["rank"], rank))
                    with self.subTest(view=view, trace=name):
                        filled |= {view} if self.compare(view, trace, part) else set()
            self.assertEqual(opened.head, [])
        if TORCH_PYTHON is not None:
            self.assertEqual(filled, set(self.views_of_traces()))

    def compare(self, view, trace, part):
        connection = sqlite3.connect(trace)
        cursor = connection.execute(f"SELECT * FROM {view}")
        names = [RENAMED_IN_VIEWS.get(view, {}).get(column[0], column[0]) for column in cursor.description]
        self.assertEqual(set(part.column_names), {"run", "rank", *names})
        expected = sorted(map(comparable, cursor))
        found = sorted(map(comparable, zip(*(part[name].to_pylist() for name in names))))
        connection.close()
        self.assertEqual(len(found), len(expected))
        self.assertEqual(found, expected)
        return bool(found)

    def views_of_traces(self):
        connection = sqlite3.connect(self.traces["training"])
        views = [name for name, in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
        connection.close()
        return views

    def test_each_view_of_a_trace_is_there(self):
        self.assertEqual(set(self.views_of_traces()),
                         set(sql.VIEWS) - STEPS_BETWEEN - set(sql.QUESTIONS) | {"stack_location"})

    def test_the_tables_are_those_of_a_trace(self):
        connection = sqlite3.connect(self.traces["training"])
        of_trace = {}
        for name, in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if not name.startswith("sqlite_") and name != "payload":
                of_trace[name] = {row[1]: TYPES[row[2]]
                                  for row in connection.execute(f"PRAGMA table_info({name})")}
        connection.close()
        ours = {table: {RENAMED.get(table, {}).get(name, name): kind for name, kind in columns.items()}
                for table, columns in TABLES.items()}
        ours.pop("stack_location")
        self.assertEqual(ours["call_row"].pop("step"), "BIGINT")
        self.assertEqual(ours, of_trace)

    def test_names_and_codes_in_the_views_are_those_of_a_trace(self):
        """The lists of operators, codes and dtypes that the views of a trace have in their text."""
        connection = sqlite3.connect(self.traces["training"])
        for view in ("barrier_op", "capture_breaks", "view_op", "collective"):
            text, = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (view,)).fetchone()
            words = re.findall(r"'[a-z]+::[a-z_]+'|'aten'|'npu'|'prims'|\b10\d{4}\b|WHEN \d+ THEN '\w+'", text)
            for word in set(words):
                self.assertIn(word, " ".join(sql.VIEWS[view].split()), view)
        connection.close()

    def test_frames_have_the_rows(self):
        with fleet.open(self.fleet) as opened:
            question = "SELECT rank, op, calls FROM top_ops WHERE rank = 0 ORDER BY calls DESC, op"
            rows = opened.arrow(question).to_pylist()
            self.assertGreater(len(rows), 3)
            self.assertEqual(opened.pandas(question).to_dict("records"), rows)
            self.assertEqual(opened.polars(question).to_dicts(), rows)
            self.assertEqual(opened.arrow("call", limit=5).num_rows, 5)

    def test_two_runs_of_one_rank_are_two_parts(self):
        folder = self.path("runs")
        for run in ("monday", "tuesday"):
            slow_writer.write(folder, self.traces["training"], run, 3, label="main", world_size=8)
        with fleet.open(folder) as opened:
            self.assertEqual(opened.arrow("SELECT run, rank, label, world_size FROM part ORDER BY run").to_pylist(),
                             [{"run": run, "rank": 3, "label": "main", "world_size": 8}
                              for run in ("monday", "tuesday")])
            self.assertEqual(opened.arrow("SELECT run, count(*) AS calls FROM call GROUP BY run ORDER BY run")
                             .column("calls").to_pylist(),
                             [sqlite3.connect(self.traces["training"]).execute("SELECT count(*) FROM call")
                              .fetchone()[0]] * 2)


if __name__ == "__main__":
    main()
