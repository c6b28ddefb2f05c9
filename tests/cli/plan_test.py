#!/usr/bin/env python3
"""acltape plan, from recorded programs to the file and the rows it writes."""
import json
import os
import sqlite3

from harness import TORCH_PYTHON, WORKLOADS, CommandTest, main

SCHEDULE = """
import torch

torch.manual_seed(0)
weight = torch.randn(16, 16, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
for step in range(6):
    loss = (torch.randn(4, 16) @ weight).relu().sum()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    loss.item()
"""

SIZES = """
import torch

weight = torch.randn(8, 8)
for rows in (4, 4, 2, 4, 4):
    x = torch.ones(rows, 8)
    for layer in range(4):
        x = (x @ weight).relu()
    x.sum().item()
"""


class Planned(CommandTest):
    """Small programs, recorded once."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.traces = {}
        test = cls("test_errors_are_sentences")
        for name, words in (("decoder", ["--tokens", "6", "--layers", "2"]),
                            ("mlp_train", ["--steps", "4"])):
            program = [TORCH_PYTHON, os.path.join(WORKLOADS, name + ".py"), *words]
            cls.add(test, name, program)
        for name, text in (("schedule", SCHEDULE), ("sizes", SIZES)):
            path = os.path.join(cls.folder, name + ".py")
            with open(path, "w") as file:
                file.write(text)
            cls.add(test, name, [TORCH_PYTHON, path])

    @classmethod
    def add(cls, test, name, program):
        cls.traces[name] = os.path.join(cls.folder, name + ".db")
        test.record(cls.traces[name], *program, payload="all")

    def plan(self, name, *options):
        """The printed tables and the file."""
        path = self.path(f"{self.id().rsplit('.', 1)[-1]}-{name}.json")
        report = self.json("plan", self.traces[name], "-o", path, *options)
        with open(path) as file:
            return report, json.load(file)

    def figures(self, report):
        return {row["figure"].strip(): row["value"] for row in report["plan"]}

    def rows(self, name, sql):
        with sqlite3.connect(f"file:{self.traces[name]}?mode=ro", uri=True) as trace:
            return trace.execute(sql).fetchall()

    def test_regions_hold_every_active_call_once(self):
        for name in self.traces:
            with self.subTest(name):
                report, plan = self.plan(name)
                figures = self.figures(report)
                self.assertEqual(sum(row["calls"] for row in report["regions"]),
                                 figures["calls of the step"])
                placed = [row["call"] for region in plan["regions"]
                          for row in region.get("placements", [])]
                self.assertEqual(len(placed), len(set(placed)))
                self.assertEqual(len(placed), figures["calls captured"])
                self.assertGreater(len(placed), 0)
                self.assertTrue(all(row["reason"] for row in report["regions"]))

    def test_host_reads_cut_the_step(self):
        report, plan = self.plan("decoder")
        eager = [region for region in plan["regions"] if region["kind"] == "eager"]
        self.assertIn("host read", [region["reason"] for region in eager])
        for row in report["regions"]:
            if row["reason"] == "host read":
                self.assertGreater(row["gain_if_capturable"], 0)

    def test_rows_go_into_the_trace(self):
        report, plan = self.plan("mlp_train")
        plan_id = self.figures(report)["plan_id"]
        document, options = self.rows(
            "mlp_train", f"SELECT document, options FROM plan WHERE plan_id = {plan_id}")[0]
        plan.pop("written")  # only the file has it
        self.assertEqual(json.loads(document), plan)
        self.assertEqual(json.loads(options)["soc"], "Ascend910B1")
        regions = self.rows("mlp_train", "SELECT kind, first_call, last_call FROM region "
                            f"WHERE plan_id = {plan_id} ORDER BY region_id")
        self.assertEqual(regions, [(r["kind"], r["first_call"], r["last_call"])
                                   for r in plan["regions"]])
        placements = self.rows("mlp_train", "SELECT call_id, stream FROM placement "
                               f"WHERE plan_id = {plan_id}")
        self.assertEqual(sorted(placements),
                         sorted((p["call"], p["stream"]) for r in plan["regions"]
                                for p in r.get("placements", [])))
        syncs = self.rows("mlp_train", "SELECT record_call, wait_call FROM sync "
                          f"WHERE plan_id = {plan_id}")
        self.assertEqual(sorted(syncs),
                         sorted((w["record_after"], w["wait_before"]) for r in plan["regions"]
                                for w in r.get("waits", [])))

    def test_no_results_writes_no_rows(self):
        before = self.rows("sizes", "SELECT count(*) FROM plan")
        report, _ = self.plan("sizes", "--no-results")
        self.assertNotIn("plan_id", self.figures(report))
        self.assertEqual(self.rows("sizes", "SELECT count(*) FROM plan"), before)

    def test_a_learning_rate_is_updated_or_left_eager(self):
        report, plan = self.plan("schedule", "--expected-replays", "1000000")
        outcomes = {row["guarded_with"]: row for row in report["guards"]}
        self.assertEqual(outcomes["input copies, arguments baked"]["captures"],
                         self.figures(report)["steps"])
        self.assertGreater(outcomes["input copies and argument updates"]["hits"], 0)
        updated = [row["argument"] for row in plan["updates"]]
        reasons = [region["reason"] for region in plan["regions"]]
        self.assertTrue(updated == ["alpha"] or
                        "argument updates cost more than capture saves" in reasons,
                        (updated, reasons))

    def test_the_most_frequent_shape_is_planned(self):
        report, _ = self.plan("sizes")
        figures = self.figures(report)
        self.assertEqual(figures["shapes of steps"], 2)
        self.assertEqual(figures["steps served"], 4)
        self.assertEqual(report["guards"][0]["captures"], 2)
        self.assertEqual(report["guards"][0]["new_shape"], 1)

    def test_no_streams_and_few_graphs_are_kept_to(self):
        report, plan = self.plan("mlp_train", "--streams", "1", "--captures", "1")
        self.assertEqual(plan["streams"], 1)
        self.assertEqual(self.figures(report)["graphs"], 1)
        report, _ = self.plan("mlp_train", "--budget-memory", "1K")
        self.assertEqual(self.figures(report)["graphs"], 0)
        self.assertIn("no memory is left in the budget",
                      [row["reason"] for row in report["regions"]])
        report, _ = self.plan("mlp_train", "--minimum-region", "100000")
        self.assertEqual(self.figures(report)["graphs"], 0)
        self.assertIn("Stay eager", " ".join(row["per_step"] for row in report["prediction"]))

    def test_policies_are_no_better_than_the_plan(self):
        for name in self.traces:
            with self.subTest(name):
                report, _ = self.plan(name)
                saved = [row["host_time_saved_per_step"] for row in report["policies"]]
                self.assertEqual(len(saved), 3)
                # Each is a sum over the step's calls, added up in another order.
                self.assertGreaterEqual(saved[0] + 1e-9 * abs(saved[0]), max(saved) - 1e-3)

    def test_the_plan_replays_bit_for_bit(self):
        for name in self.traces:
            with self.subTest(name):
                path = self.path(f"replayed-{name}.json")
                self.acltape("plan", self.traces[name], "-o", path)
                report = self.json("replay", self.traces[name], "--plan", path)
                summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
                self.assertEqual(summary["outputs different"], 0)
                self.assertGreater(summary["steps run captured"], 0)

    def test_a_spread_plan_replays_bit_for_bit_under_jitter(self):
        path = self.path("spread.json")
        self.acltape("plan", self.traces["decoder"], "--spread", "-o", path)
        with open(path) as file:
            self.assertGreater(json.load(file)["streams"], 1)
        report = self.json("replay", self.traces["decoder"], "--plan", path, "--repetitions", "10",
                           env={**os.environ, "ACLTAPE_SOFT_JITTER": "3"})
        summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
        self.assertEqual(summary["outputs different"], 0)

    def test_calibrated_costs_are_used_and_kept(self):
        report, _ = self.plan("sizes", "--calibrate")
        self.assertIn("calibrated on soft device", self.figures(report)["costs"])
        again, _ = self.plan("sizes")
        self.assertEqual(self.figures(again)["costs"], self.figures(report)["costs"])

    def test_table_and_csv_print(self):
        out = self.path("formats.json")
        text = self.acltape("plan", self.traces["decoder"], "-o", out).out
        for word in ("captured", "host read", "this plan", "captured by the plan"):
            self.assertIn(word, text)
        csv = self.acltape("plan", self.traces["decoder"], "-o", out, "--format", "csv").out
        self.assertIn("region,kind,first_call", csv)

    def test_errors_are_sentences(self):
        out = self.path("errors.json")
        result = self.acltape("plan", self.traces["sizes"], "-o", out, "--soc", "Granite1", code=2)
        self.assertSentence(result, "Granite1", "Ascend910B1")
        result = self.acltape("plan", self.traces["sizes"], "-o", "/nowhere/plan.json", code=4)
        self.assertSentence(result, "/nowhere/plan.json")
        self.acltape("plan", self.traces["sizes"], "-o", out, "--streams", "-1", code=2)
        once = self.script("import torch\ntorch.ones(3).relu()\n")
        trace = self.path("once.db")
        self.record(trace, TORCH_PYTHON, once)
        self.assertSentence(self.acltape("plan", trace, "-o", out, code=3), "has no steps",
                            "--steps-from")


if __name__ == "__main__":
    main()
