#!/usr/bin/env python3
"""compare --max-regression: slower, not slower, not to be told, and nothing to hold it against."""
import json
import os
import shutil
import sqlite3

from harness import TORCH_PYTHON, CommandTest, main

PROGRAM = """
import torch
with torch.no_grad():
    w = torch.ones(8, 8)
    for _ in range(8):
        w = torch.tanh(torch.relu(w @ w) * 0.5)
"""
FAST = ("--repetitions", "7", "--warmup", "1")


class Regression(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.recorded = os.path.join(cls.folder, "recorded.db")
        cls("test_slower_than_the_last_run").record(cls.recorded, TORCH_PYTHON, "-c", PROGRAM)

    def setUp(self):
        self.trace = self.path(f"{self.id().rsplit('.', 1)[-1]}.db")
        shutil.copy(self.recorded, self.trace)

    def compare(self, *words, code=0):
        return self.acltape("compare", self.trace, *FAST, *words, code=code)

    def times_are(self, nanoseconds, eager=10**6):
        """Makes the times that the trace holds other ones, far from what any machine takes."""
        connection = sqlite3.connect(self.trace)
        connection.execute(
            "UPDATE sample SET host_ns = CASE WHEN run_id IN (SELECT run_id FROM run WHERE "
            "mode = 'eager') THEN ? ELSE ? END", (eager, nanoseconds))
        connection.commit()
        connection.close()

    def runs(self, mode):
        return [row["run_id"] for row in self.json(
            "query", self.trace, f"SELECT run_id FROM run WHERE mode = '{mode}' ORDER BY 1")]

    def test_the_first_run_has_nothing_to_hold_it_against(self):
        result = self.compare("--max-regression", "5%", code=125)
        self.assertIn("the trace has no earlier run like this one", result.err)
        self.compare("--max-regression", "1e12%")  # now there is one

    def test_slower_than_the_last_run(self):
        self.compare()
        self.times_are(10)
        result = self.compare("--max-regression", "50%", code=1)
        self.assertRegex(result.err, r"captured host time, as a share of the eager one, is slower than "
                                     r"run \d+ by more than 50%: "
                                     r"\+\d+\.\d% \[\+\d+\.\d%, \+\d+\.\d%\]")

    def test_a_machine_that_was_faster_as_a_whole_is_no_regression(self):
        self.compare()
        self.times_are(10, eager=10)
        result = self.compare("--max-regression", "50%")
        self.assertIn("is not slower than", result.err)

    def test_not_slower_than_the_last_run(self):
        self.compare()
        self.times_are(10**10)
        result = self.compare("--max-regression", "5%")
        self.assertRegex(result.err, r"is not slower than run \d+ by more than 5%")

    def test_ratios_that_are_printed_are_those_of_the_medians_beside_them(self):
        times = {(row["execution"], row["quantity"]): row
                 for row in json.loads(self.compare("--format", "json").out)["times"]}
        for quantity in ("host_per_step", "latency_per_step"):
            eager, captured, ratio = (times[execution, quantity] for execution in
                                      ("eager", "captured", "eager/captured"))
            self.assertAlmostEqual(ratio["median"], eager["median"] / captured["median"])
            self.assertAlmostEqual(ratio["low"], eager["low"] / captured["high"])
            self.assertAlmostEqual(ratio["high"], eager["high"] / captured["low"])

    def test_the_step_of_the_program_is_that_of_step_summary(self):
        steps = self.json("query", self.trace, "SELECT wall_ns FROM step_summary ORDER BY wall_ns")
        shown = {row["execution"]: row for row in json.loads(self.compare("--format", "json").out)["times"]
                 if row["quantity"] == "host_per_step"}["recorded"]
        self.assertEqual(shown["low"] >= steps[0]["wall_ns"], True)
        self.assertEqual(shown["high"] <= steps[-1]["wall_ns"], True)
        self.assertEqual(shown["samples"] <= len(steps), True)

    def test_few_repetitions_exclude_no_chance(self):
        self.compare()
        self.times_are(10)
        self.acltape("compare", self.trace, "--repetitions", "3", "--max-regression", "50%", code=125)

    def test_chance_is_not_excluded_where_times_scatter(self):
        self.compare()
        run = self.runs("captured")[-1]
        # Half of the earlier times are far below and half far above what is measured.
        connection = sqlite3.connect(self.trace)
        connection.execute("UPDATE sample SET host_ns = CASE WHEN rowid % 2 THEN 1 "
                           "ELSE 10000000000 END WHERE run_id = ?", (run,))
        connection.commit()
        connection.close()
        result = self.compare("--max-regression", "5%", "--baseline", run, code=125)
        self.assertIn("may or may not be slower", result.err)

    def test_a_run_and_a_file_as_baseline(self):
        before = self.compare("--format", "json")
        path = self.path("before.json")
        with open(path, "w") as file:
            file.write(before.out)
        run = self.runs("captured")[-1]
        for baseline, name in ((run, f"run {run}"), (path, path)):
            result = self.compare("--max-regression", "1e12%", "--baseline", baseline)
            self.assertIn(f"not slower than {name} by more than 1e+12%", result.err)
        report = json.loads(before.out)
        for row in report["times"]:
            for key in ("median", "low", "high"):
                row[key] = 5.0 if row["execution"] == "captured" else 1e6
        with open(path, "w") as file:
            json.dump(report, file)
        result = self.compare("--max-regression", "5%", "--baseline", path, code=1)
        self.assertIn(f"is slower than {path}", result.err)
        report = json.loads(self.compare("--max-regression", "5%", "--baseline", path, "--format",
                                         "json", code=1).out)
        verdicts = {row["quantity"]: row["value"] for row in report["regression"]}
        self.assertEqual((verdicts["verdict"], verdicts["against"]), ("slower", path))

    def test_without_results_the_last_run_of_the_trace_counts(self):
        self.compare()
        last = self.runs("captured")[-1]
        result = self.compare("--max-regression", "1e12%", "--no-results")
        self.assertIn(f"run {last} ", result.err)
        self.assertEqual(self.runs("captured")[-1], last)

    def test_what_is_no_baseline_is_refused(self):
        self.compare()
        eager = self.runs("eager")[-1]
        path = self.path("odd.json")
        for text, words in (("{}", "is not what"), ("no json", "is not what"),
                            ('{"times": []}', "has no host time"),
                            ('{"times": [{"quantity": "host_per_step"}]}', "is not what")):
            with open(path, "w") as file:
                file.write(text)
            result = self.compare("--max-regression", "5%", "--baseline", path, code=2)
            self.assertSentence(result, words)
        for baseline, words in ((eager, "is no captured run"), (9999, "is no captured run"),
                                (self.path("none.json"), "neither the number of a run nor a file")):
            self.assertSentence(self.compare("--max-regression", "5%", "--baseline", baseline, code=2),
                                words)
        for part in ("5x", "-5%", "%", "nan"):
            self.assertSentence(self.compare(f"--max-regression={part}", code=2),
                                "--max-regression", "5%")
        self.assertSentence(self.compare("--baseline", "1", code=2), "`--max-regression`")

    def test_a_run_of_another_device_is_refused(self):
        self.compare()
        run = self.runs("captured")[-1]
        connection = sqlite3.connect(self.trace)
        connection.execute("UPDATE run SET device = 'another device'")
        connection.commit()
        connection.close()
        self.assertIn("no earlier run like this one",
                      self.compare("--max-regression", "5%", code=125).err)
        result = self.compare("--max-regression", "5%", "--baseline", run, code=2)
        self.assertSentence(result, "timed on another device", "another device")


if __name__ == "__main__":
    main()
