#!/usr/bin/env python3
"""A mistake that was planted after the model of a workload is named at its line, by each command.

programs/planted_mistakes.py runs a workload unchanged and plants the mistake. It is recorded three times:
with a host read and a factor that is another one in each step, right, and with a wrong factor.
"""
import json
import os
import sqlite3
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(FOLDER), "cli"))
from harness import TORCH_PYTHON, WORKLOADS, CommandTest, main, marks_of  # noqa: E402

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # the adapter needs a device
os.environ["OMP_NUM_THREADS"] = "1"  # small tensors
PROGRAM = os.path.join(FOLDER, "programs", "planted_mistakes.py")
IMAGES = ("--batches", "3", "--batch-size", "1", "--size", "32")


class Planted:
    """Tests that hold for every workload."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.traces = {}
        with open(PROGRAM) as file:
            cls.marks = marks_of(file.read())

    def recorded(self, mistakes, payload="all"):
        if mistakes not in self.traces:
            trace = self.path(mistakes + ".db")
            self.record(trace, TORCH_PYTHON, "-B", PROGRAM, mistakes,
                        os.path.join(WORKLOADS, self.workload + ".py"), *self.arguments,
                        payload=payload)
            self.traces[mistakes] = trace
        return self.traces[mistakes]

    def place(self, mark):
        return f"planted_mistakes.py:{self.marks[mark]} (Planted.leave)"

    def calls(self, trace, mark):
        """The leaves of a planted line in forward passes, in order."""
        return [call for call, in sqlite3.connect(trace).execute(
            "SELECT call_id FROM call_location JOIN call USING (call_id) WHERE leaf AND via = 'own' "
            "AND line = ? AND file LIKE '%/planted_mistakes.py' ORDER BY call_id", (self.marks[mark],))]

    def found(self, *options):
        """The summary of a bisection that finds a cause, by name."""
        rows = self.json("bisect", self.recorded("none"), "--no-results", "--no-journal", "--executions", "1",
                         *options, code=1)["summary"]
        return {row["quantity"].strip(): row["value"] for row in rows}

    def test_host_read_in_a_step_is_named_by_lint_and_plan(self):
        trace = self.recorded("item,rate", payload="inputs")
        rows = self.json("lint", trace, "--no-results", code=1)["findings"]
        reads = [row for row in rows if "_local_scalar_dense" in row["message"]
                 and row["where"].endswith(self.place("item"))]
        self.assertTrue(reads, rows)
        self.assertEqual({row["rule"] for row in reads}, {"LINT-38"})
        regions = self.json("plan", trace, "--no-results", "-o", self.path("item.json"))["regions"]
        barred = [row for row in regions if row["reason"] == "host read" and row["where"].endswith(self.place("item"))]
        self.assertTrue(barred, regions)

    def test_number_that_varies_between_steps_is_named_by_lint_steps_and_plan(self):
        trace = self.recorded("item,rate", payload="inputs")
        rows = [row for row in self.json("lint", trace, "--no-results", code=1)["findings"]
                if row["rule"] == "LINT-14"]
        self.assertTrue(rows)
        self.assertLessEqual({row["where"].removeprefix("backward of ")[-len(self.place("factor")):]
                              for row in rows}, {self.place("factor")})
        varying = self.json("steps", trace)["arguments"]
        self.assertIn("alpha", [row["argument"] for row in varying])
        for row in varying:
            self.assertTrue(row["where"].endswith(self.place("factor")), row)
        self.json("plan", trace, "--no-results", "-o", self.path("rate.json"))
        with open(self.path("rate.json")) as file:
            updates = json.load(file)["updates"]
        self.assertTrue({update["call"] for update in updates if update["argument"] == "alpha"}
                        & set(self.calls(trace, "factor")), updates)

    def test_wrong_constant_is_named_by_diff_and_by_bisect_of_both_recordings(self):
        right, wrong = self.recorded("none"), self.recorded("constant")
        report = self.json("diff", right, wrong, "--no-results", code=1)
        self.assertTrue(report["origins"][0]["where"].endswith(self.place("factor")), report["origins"])
        self.assertEqual(int(report["origins"][0]["a_call"]), self.calls(right, "factor")[0])
        self.assertIn(self.place("factor"), self.found("--against", wrong)["where"])

    def test_wrong_bits_of_a_captured_call_are_named_by_bisect(self):
        call = self.calls(self.recorded("none"), "joined")[-1]
        self.assertIn(self.place("joined"), self.found("--plant", f"wrong_bits@{call}")["where"])

    def planned_on_two_streams(self, trace):
        """A plan file in which one of the two planted branches runs on a side stream, and its calls."""
        path = self.path("streams.json")
        self.json("plan", trace, "--no-results", "--streams", "1", "-o", path)
        with open(path) as file:
            plan = json.load(file)
        planted = {mark: set(self.calls(trace, mark)) for mark in ("factor", "beside", "joined")}
        region = next(region for region in plan["regions"] if region["kind"] == "captured"
                      and planted["joined"] & {place["call"] for place in region["placements"]})
        order = [place["call"] for place in region["placements"]]
        start, beside, joined = (next(call for call in order if call in planted[mark])
                                 for mark in ("factor", "beside", "joined"))
        for place in region["placements"]:
            place["stream"] = int(place["call"] == beside)
        region["waits"] = [
            {"record_after": order[order.index(start) - 1], "wait_before": beside, "event": 0},
            {"record_after": beside, "wait_before": joined, "event": 1}]
        plan["streams"] = 2
        with open(path, "w") as file:
            json.dump(plan, file)
        return path, beside, joined

    def test_missing_wait_between_two_streams_of_a_plan_is_named_by_bisect(self):
        plan, beside, joined = self.planned_on_two_streams(self.recorded("none"))
        said = self.found("--plan", plan, "--what", "streams", "--plant", f"missing_wait@{joined}")
        self.assertEqual(said["class"], "ordering")
        self.assertIn(self.place("beside"), said["where"])
        self.assertIn(f"call {joined} aten::sub.Tensor does not wait for call {beside} aten::neg",
                      said["evidence"])


class ResNet18(Planted, CommandTest):
    workload, arguments = "resnet18", IMAGES


class GoogLeNet(Planted, CommandTest):
    workload, arguments = "googlenet", IMAGES


class MlpTrain(Planted, CommandTest):
    workload, arguments = "mlp_train", ("--steps", "5", "--width", "32")


class BertLayer(Planted, CommandTest):
    workload = "bert_layer"
    arguments = ("--batches", "3", "--layers", "1", "--width", "32", "--length", "16")


class Decoder(Planted, CommandTest):
    workload, arguments = "decoder", ("--tokens", "4", "--layers", "1", "--width", "32")


if __name__ == "__main__":
    main()
