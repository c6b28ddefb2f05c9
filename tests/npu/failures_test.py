#!/usr/bin/env python3
"""What the device said of a failed call of an NPU program, values of a recording that came about by chance, and diffs
between recordings of one program."""
import json
import os
import sqlite3

import harness

# The program's word, a part of the device's text, the line of the program in the table of failures, the operator that
# the text names.
FAILURES = (
    ("capture", "is capturing", "(capture)", None),
    ("gather", "index out of range", "(gather)", "aclnnIndexSelect"),
    ("graph", "index out of range", "(graph)", "aclnnIndexSelect"),
    ("update", "2 kernels and 1 were launched", "(update)", None),
)


class Failures(harness.NpuTest):
    def record(self, *words, code=0, name="t.db"):
        trace = os.path.join(self.folder, name)
        self.call(harness.BINARY, "record", "--soft", "--quiet", "--force", "--payload", "all", "-o", trace, "--",
                  harness.PYTHON, os.path.join(harness.PROGRAMS, words[0]), *words[1:], code=code)
        return trace

    def lint(self, trace, *words):
        done = self.call(harness.BINARY, "lint", trace, "--no-results", "--format", "json", "--fail-on", "never",
                         *words)
        return json.loads(done.stdout)

    def test_the_first_failure_has_the_devices_text_and_teardown_comes_last(self):
        for word, text, line, operator in FAILURES:
            with self.subTest(program=word):
                trace = self.record("failing.py", word, code=1)
                failures = self.lint(trace)["failures"]
                self.assertIn(text, failures[0]["the_device_said"], failures)
                self.assertIn(line, failures[0]["where"])
                self.assertEqual(failures[0]["what_became_of_it"], "the program ended with code 1")
                if operator:
                    self.assertIn(operator, failures[0]["operator"])
                    self.assertIn("failing.py:", failures[0]["operator_where"])
                    self.assertEqual(failures[-1]["what_became_of_it"], "while the program ended")
                for level in "aten", "acl":
                    self.assertTrue([row for row in self.lint(trace, "--level", level)["findings"]
                                     if row["severity"] == "error"], level)
                suggested = self.call(harness.BINARY, "info", trace).stderr
                self.assertIn("next: acltape lint", suggested)

    def test_memory_that_the_program_expects_to_lack_is_no_finding(self):
        trace = self.record("failing.py", "memory-handled")
        tables = self.lint(trace)
        self.assertEqual({row["what_became_of_it"] for row in tables["failures"]}, {"handled"})
        self.assertEqual([row for row in tables.get("findings", []) if row["rule"] in ("LINT-50", "LINT-51")], [])


class Chance(harness.NpuTest):
    record = Failures.record

    def replay(self, trace, code):
        done = self.call(harness.BINARY, "replay", trace, "--level", "aten", "--no-results", "--format", "json",
                         code=code)
        return json.loads(done.stdout)

    def test_a_replay_that_differs_names_what_the_recording_left_to_chance(self):
        trace = self.record("staged.py", "one")
        row, = self.replay(trace, code=1)["chance_in_the_recording"]
        self.assertEqual(row["rule"], "LINT-45")
        self.assertIn("staged.py:17 ", row["where"])
        self.assertIn("next: acltape lint", self.call(harness.BINARY, "replay", trace, "--no-results", code=1).stderr)

    def test_a_right_twin_replays_equal(self):
        tables = self.replay(self.record("staged.py", "four"), code=0)
        self.assertEqual(tables["chance_in_the_recording"], [])

    def test_copies_that_the_queue_of_the_adapter_issues_have_the_line_of_their_leaf(self):
        with sqlite3.connect(self.record("staged.py", "four")) as database:
            rows = database.execute(
                "SELECT leaf.op, place.line FROM call copy JOIN call leaf ON leaf.call_id = copy.parent_id "
                "JOIN call_location place ON place.call_id = copy.call_id WHERE copy.op = 'aclrtMemcpyAsync' AND "
                "copy.thread_id <> leaf.thread_id").fetchall()
        self.assertEqual(rows, [("aten::copy_", 17)] * 4)


class Twice(harness.NpuTest):
    record = Failures.record

    def diff(self, *words, code):
        done = self.call(harness.BINARY, "diff", *words, "--no-results", "--format", "json", code=code)
        return {row["quantity"].strip(): row["value"] for row in json.loads(done.stdout)["summary"]}

    def test_two_recordings_of_one_program_are_equal_at_both_levels(self):
        for form in "eager", "graph":
            first, second = self.record("sliced.py", form, name="a.db"), self.record("sliced.py", form, name="b.db")
            for level in "aten", "acl":
                with self.subTest(form=form, level=level):
                    self.assertIn("equal", self.diff(first, second, "--level", level, code=0)["verdict"])

    def test_eager_against_graph_names_the_argument_that_the_graph_keeps(self):
        eager, graph = self.record("sliced.py", "eager", name="a.db"), self.record("sliced.py", "graph", name="b.db")
        summary = self.diff(eager, graph, code=1)
        self.assertIn("sliced.py:17 (attend)", summary["where"])
        self.assertIn("[9, 8] -> [8, 8]", summary["change"])
        # The eager run before the capture has its counterpart, though B has its steps elsewhere.
        self.assertEqual((summary["deleted from A"], summary["inserted in B"]), (0, 0))
        done = self.call(harness.BINARY, "bisect", eager, "--against", graph, "--no-journal", "--no-results",
                         "--format", "json", code=1)
        report = json.loads(done.stdout)
        found, = report["found"]
        self.assertIn("(shape of self [9, 8] -> [8, 8]; shape of out [9] -> [8]), with what reads it up to call",
                      found["what"])
        summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
        self.assertIn("sliced.py:17 (attend)", summary["where"])


if __name__ == "__main__":
    harness.main()
