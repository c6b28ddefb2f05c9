#!/usr/bin/env python3
"""Programs that execute graphs of their own: their numbers are possible, and agree between commands."""
import json
import os
import sqlite3

import harness

PROGRAMS = {
    "one graph": ("decoder.py", "--device", "npu", "--graph", "--layers", "2", "--tokens", "8"),
    "a graph for each batch": ("batch_graphs.py", "--tokens", "4", "--batches", "8", "2", "8"),
}


class OwnGraphs(harness.NpuTest):
    def recorded(self, program, *arguments):
        trace = os.path.join(self.folder, "t.db")
        self.call(harness.BINARY, "record", "--soft", "--force", "--quiet", "--payload", "all", "-o", trace, "--",
                  harness.PYTHON, os.path.join(harness.WORKLOADS, program), *arguments)
        return trace

    def tables(self, *words):
        return json.loads(self.call(harness.BINARY, *words, "--format", "json").stdout)

    def test_plan_compare_and_step_summary_agree(self):
        for name, (program, *arguments) in PROGRAMS.items():
            with self.subTest(program=name):
                trace = self.recorded(program, *arguments)
                self.check(trace)

    def check(self, trace):
        plan = self.tables("plan", trace, "--force", "-o", os.path.join(self.folder, "plan.json"))
        figures = {row["figure"].strip(): row["value"] for row in plan["plan"]}
        self.assertGreater(figures["calls captured already"], 0.7 * figures["calls of the step"])
        self.assertEqual(figures["graphs of the program's own"], 1)
        self.assertLessEqual(figures["calls captured already"] + figures["calls captured"],
                             figures["calls of the step"])
        self.assertTrue(0 <= figures["host time captured, %"] <= 100, figures)
        for row in plan["regions"]:
            self.assertGreaterEqual(row["host"], 0, row)
            if row["kind"] == "already captured":
                self.assertEqual(row["saves"], 0)
                self.assertEqual(row["reason"], "captured already, by the program")
        self.assertEqual(sum(row["calls"] for row in plan["regions"] if row["kind"] == "already captured"),
                         figures["calls captured already"])
        for row in plan["prediction"]:
            for key in ("host", "waits", "device", "latency"):
                self.assertGreaterEqual(row[key] or 0, 0, row)

        compared = self.tables("compare", trace, "--repetitions", "5")
        step = next(row for row in compared["times"] if row["execution"] == "recorded")
        setting = {row["quantity"].strip(): row["value"] for row in compared["setting"]}
        self.assertEqual(setting["in graphs of the program's own"], figures["calls captured already"])
        with sqlite3.connect(trace) as database:
            walls = [wall for wall, in database.execute("SELECT wall_ns FROM step_summary ORDER BY 1")]
        self.assertGreaterEqual(step["low"], walls[0])
        self.assertLessEqual(step["high"], walls[-1])
        steps = self.tables("steps", trace)["families"]
        self.assertEqual((min(row["least_ns"] for row in steps), max(row["greatest_ns"] for row in steps)),
                         (walls[0], walls[-1]))
        self.call(harness.BINARY, "replay", trace, "--plan", os.path.join(self.folder, "plan.json"))


class Workers(harness.NpuTest):
    def test_steps_are_those_of_the_process_with_the_device(self):
        trace = os.path.join(self.folder, "t.db")
        recorded = self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--",
                             harness.PYTHON, os.path.join(harness.PROGRAMS, "loader_with_workers.py"))
        self.assertNotIn("no steps were looked for", recorded.stderr)
        self.assertIn("next: acltape steps", self.call(harness.BINARY, "info", trace).stderr)
        whole = json.loads(self.call(harness.BINARY, "steps", trace, "--format", "json").stdout)
        chosen = json.loads(self.call(harness.BINARY, "steps", trace, "--process", "1", "--format",
                                      "json").stdout)
        self.assertEqual([row["steps"] for row in whole["families"]],
                         [row["steps"] for row in chosen["families"]])


if __name__ == "__main__":
    harness.main()
