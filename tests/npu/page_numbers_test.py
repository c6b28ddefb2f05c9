#!/usr/bin/env python3
"""Each number on the report page is that of the command that prints it, for a training program with
workers and for a decoder that captures a graph per batch size."""
import json
import os
import re
import sqlite3
import tempfile

import harness

HOST_PARTS = ("loading_ns", "waiting_ns", "copying_ns", "host_operators_ns", "issuing_ns", "place_not_known_ns",
              "program_ns")
PROGRAMS = os.path.join(harness.SOURCE, "tests", "matrix", "programs")


class PageNumbers(harness.NpuTest):
    OPTIONS = ()  # those that choose the process for commands that need one

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="acltape_page_numbers_")
        cls.trace = os.path.join(cls.place.name, "t.db")
        test = cls("skipTest")
        test.folder = cls.place.name
        test.call(harness.BINARY, "record", "--soft", "--payload", "all", "--modules", "-o", cls.trace, "--",
                  harness.PYTHON, os.path.join(PROGRAMS, cls.PROGRAM[0]), *cls.PROGRAM[1:])
        test.call(harness.BINARY, "report", cls.trace, "-o", os.path.join(cls.place.name, "t.html"))
        cls.page = harness.data_of_page(os.path.join(cls.place.name, "t.html"))

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def tables(self, *words, code=0):
        return json.loads(self.call(harness.BINARY, *words, "--format", "json", code=code).stdout)

    def facts(self, table, key="fact"):
        return {row[key]: row["value"] for row in table}

    def test_counts_are_those_of_info(self):
        info = self.facts(self.tables("info", self.trace)["trace"])
        self.assertEqual(self.page["extent"]["all"], info["calls"])
        self.assertEqual(self.page["facts"]["ops"], info["ops"])
        self.assertEqual(self.page["memory"]["buffers"], info["buffers"])
        self.assertEqual(len(self.page["facts"]["processes"]), info["processes"])

    def test_the_step_as_a_graph_is_the_step_of_the_plan(self):
        plan = self.tables("plan", self.trace, "-o", os.path.join(self.folder, "p.json"), "--no-results",
                           *self.OPTIONS)
        figures = self.facts(plan["plan"], "figure")
        shown = self.page["plan"]
        self.assertEqual(shown["nodes_in_all"], figures["calls of the step"])
        self.assertEqual(len(shown["nodes"]), figures["calls of the step"])
        captured = [region for region in shown["regions"] if region["captured"]]
        # What the program's own graphs hold is captured already, and the plan counts it apart.
        self.assertEqual(sum(region["calls"] - region["already"] for region in captured), figures["calls captured"])
        self.assertEqual(len([region for region in captured if not region["already"]]), figures["graphs"])
        self.assertEqual(len(shown["waits"]), figures["waits"])
        self.assertEqual([region["calls"] for region in shown["regions"]], [row["calls"] for row in plan["regions"]])

    def test_steps_are_those_of_the_command(self):
        steps = self.facts(self.tables("steps", self.trace, *self.OPTIONS)["steps"])
        self.assertEqual(len(self.page["facts"]["steps"]), steps["steps"])

    def test_findings_are_those_of_lint_at_both_levels(self):
        done = self.call(harness.BINARY, "lint", self.trace, "--no-results", "--ungrouped", "--format", "json",
                         "--fail-on", "never")
        listed = sorted((row["rule"], row["call_id"], row["message"]) for row in json.loads(done.stdout)["findings"])
        shown = self.page["findings"]["findings"]
        self.assertEqual(sorted((row["rule"], row["call_id"], row["message"]) for row in shown), listed)
        # The leaves of PyTorch tell what calls of the interface do not.
        self.assertTrue(any("aten::" in row["message"] for row in shown), listed)

    def test_findings_are_counted_as_lint_counts_them(self):
        done = self.call(harness.BINARY, "lint", self.trace, "--no-results", "--fail-on", "never")
        said = re.search(r"^(.*) in \d+ rules? in", done.stdout, re.MULTILINE).group(1)
        leads = [row for row in self.page["findings"]["findings"] if row.get("leads")]
        counts = []
        for severity, plural in (("error", "errors"), ("notice", "notices"), ("info", "info")):
            count = len([row for row in leads if row["severity"] == severity and not row["evidence"]["adapter"]])
            if count:
                counts.append(f"{count} {severity if count == 1 else plural}")
        self.assertEqual(", ".join(counts), said)
        apart = re.search(r"; (\d+) findings? about calls of the adapter", done.stdout)
        self.assertEqual(len([row for row in leads if row["evidence"]["adapter"]]), int(apart.group(1)) if apart else 0)

    def test_times_of_steps_are_those_of_the_command(self):
        """Without a chosen process, too: workers that load data are no part of a step."""
        walls = [row["wall_ns"] for row in self.page["breakdown"]["rows"]]
        for options in ((), self.OPTIONS):
            families = self.tables("steps", self.trace, *options)["families"]
            self.assertEqual(min(row["least_ns"] for row in families), min(walls))
            self.assertEqual(max(row["greatest_ns"] for row in families), max(walls))

    def test_the_breakdown_is_that_of_the_query_and_adds_up(self):
        rows = self.page["breakdown"]["rows"]
        self.assertEqual(rows, json.loads(self.call(harness.BINARY, "query", self.trace, "--name", "step_breakdown",
                                                    "--format", "json").stdout))
        self.assertEqual(len(rows), len(self.page["facts"]["steps"]))
        for row in rows:
            parts = [row[name] or 0 for name in HOST_PARTS]
            self.assertGreaterEqual(min(parts), 0, row)
            self.assertEqual(sum(parts), row["step_ns"], row)
            self.assertEqual(row["wall_ns"] + row["before_ns"], row["step_ns"], row)
            self.assertGreater(row["issuing_ns"], 0, row)
            self.assertIsNone(row["device_compute_ns"])  # the times of the device were not recorded
        # A program without a DataLoader does not say what loading takes.
        self.assertEqual(all(row["loading_ns"] is None for row in rows), "train.py" not in self.PROGRAM)

    def test_no_byte_counts_twice(self):
        """Blocks of the allocator and the tensors in them are layers of their own, and tensors fit into blocks."""
        memory = self.page["memory"]
        places = {(place["device"], place["layer"]): place for place in memory["places"]}
        self.assertEqual(sum(place["buffers"] for place in places.values()) + memory["untimed"], memory["buffers"])
        tensors, blocks = places[1, "tensor"], places[1, "block"]
        self.assertGreater(tensors["peak_bytes"], 0)
        self.assertLess(tensors["peak_bytes"], blocks["peak_bytes"])
        for block, _, offset, size, *_ in memory["allocator"]["inside"]:
            self.assertLessEqual(offset + size, memory["allocator"]["blocks"][block][1])

    def test_memory_begins_with_the_first_call(self):
        with sqlite3.connect(f"file:{self.trace}?mode=ro", uri=True) as database:
            first, last = database.execute("SELECT min(begin_ns), max(end_ns) FROM call").fetchone()
        for place in self.page["memory"]["places"]:
            self.assertGreaterEqual(place["points"][0][0], first)
            self.assertLessEqual(place["points"][-1][0], last)


class TrainingPage(PageNumbers):
    PROGRAM = ("train.py", "--device", "npu:0", "--amp", "--workers", "2", "--accumulate", "2")
    OPTIONS = ("--process", "1")

    def test_steps_are_those_of_the_process_with_the_device(self):
        self.assertEqual(self.page["facts"]["process_of_steps"], 1)
        self.assertEqual(len(self.page["facts"]["processes"]), 3)
        self.assertEqual(self.page["own_graphs"]["graphs"], [])
        self.assertEqual(self.page["plan"]["in_own_graphs"], 0)


class GraphsPage(PageNumbers):
    PROGRAM = ("generate.py", "--device", "npu:0", "--graphs", "--batches", "4,2,1,2")

    def test_graphs_are_those_of_captures(self):
        captures = self.tables("captures", self.trace)
        shown = self.page["own_graphs"]
        for key in ("graph", "begins", "operators", "streams", "executions", "reason"):
            self.assertEqual([row[key] for row in shown["graphs"]], [row[key] for row in captures["captures"]], key)
        self.assertEqual([len(row["executed_by"]) for row in shown["graphs"]],
                         [row["executions"] for row in captures["captures"]])
        facts = self.facts(captures["facts"])
        self.assertEqual(shown["operator_lists"], facts["of different operators"])
        self.assertEqual(shown["most_alive"], facts["most graphs at a time"])

    def test_what_the_program_captures_itself_is_no_advice(self):
        plan = self.page["plan"]
        captured = sum(region["calls"] for region in plan["regions"] if region["captured"])
        self.assertGreaterEqual(plan["in_own_graphs"], 0.9 * captured)


del PageNumbers  # its checks are those of the classes above

if __name__ == "__main__":
    harness.main()
