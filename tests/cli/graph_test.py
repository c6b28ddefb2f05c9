#!/usr/bin/env python3
"""The program graph of recorded programs: steps that differ, dependencies."""
import csv
import io

from harness import TORCH_PYTHON, CommandTest, main

# Each step ends with the read of a factor, which the next one uses, and has a learning rate of its own;
# the batch is another tensor each time, and the cache grows.
SCHEDULE = """
import torch
weight = torch.ones(4, 4)
cache = torch.zeros(1, 4)
factor = 0.5
for step in range(5):
    batch = torch.full((2, 4), float(step))
    weight.mul_(weight)
    torch.add(weight, weight, alpha=factor, out=weight)
    torch.sub(weight, weight, alpha=0.1 / (1 + step // 2), out=weight)
    cache = torch.cat([cache, batch])
    loss = torch.mm(batch, weight).sum()
    factor = (loss + step).item()
"""


class Steps(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = cls.folder + "/schedule.db"
        test = cls("test_a_schedule_varies_and_an_item_is_carried_over")
        test.record(cls.trace, TORCH_PYTHON, test.script(SCHEDULE), options=["--steps-from", "none"])
        cls.report = test.json("steps", cls.trace)

    def test_a_schedule_varies_and_an_item_is_carried_over(self):
        alphas = [row for row in self.report["arguments"] if row["argument"] == "alpha"]
        self.assertEqual([(row["op"], row["kind"]) for row in alphas],
                         [("aten::add.out", "carried"), ("aten::sub.out", "varying")], alphas)
        self.assertEqual(self.op_of(alphas[0]["read_call"]), "aten::_local_scalar_dense")
        self.assertIsNone(alphas[1]["read_call"])

    def op_of(self, call):
        return self.json("query", self.trace, f"SELECT op FROM call WHERE call_id = {call}")[0]["op"]

    def test_families_count_what_their_rows_list(self):
        steps = self.json("query", self.trace, "SELECT count(*) AS n FROM step")[0]["n"]
        self.assertGreaterEqual(steps, 4)
        families = self.report["families"]
        self.assertEqual(sum(row["steps"] for row in families), steps)
        for row in families:
            of_family = [x for x in self.report["arguments"] if x["family"] == row["family"]]
            self.assertEqual(row["varying"] + row["derived"], len(of_family))
            inputs = [x for x in self.report["inputs"] if x["family"] == row["family"]]
            self.assertEqual(row["moving"], len(inputs))
            self.assertEqual(row["moving_bytes"], sum(x["bytes"] for x in inputs))
            self.assertLessEqual(row["least_ns"], row["median_ns"])
            self.assertLessEqual(row["median_ns"], row["greatest_ns"])

    def test_the_cache_has_a_shape_symbol(self):
        sizes = [row["sizes"] for row in self.report["symbols"] if row["op"] == "aten::cat"]
        self.assertEqual(len(sizes), 1, self.report["symbols"])
        numbers = [int(size) for size in sizes[0].split(", ")]
        self.assertEqual([b - a for a, b in zip(numbers, numbers[1:])], [2] * (len(numbers) - 1))

    def test_rows_bounds_each_table_for_people(self):
        out = self.acltape("steps", self.trace, "--stable", "--rows", "1").out
        self.assertIn("in all", out)

    def test_a_program_that_does_not_repeat_is_said_so(self):
        trace = self.path("once.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch; torch.ones(2).abs().exp().sin()")
        self.assertSentence(self.acltape("steps", trace, code=3), "no steps", "--steps-from")


TRAINING = """
import torch
layer = torch.nn.Linear(4, 3)
for step in range(3):
    layer(torch.ones(2, 4)).relu().sum().backward()
"""


class Dependencies(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = cls.folder + "/training.db"
        test = cls("test_forward_results_lead_to_backward_calls")
        test.record(cls.trace, TORCH_PYTHON, test.script(TRAINING))

    def test_forward_results_lead_to_backward_calls(self):
        rows = self.json("graph", self.trace, "step:1", "--dependencies")
        kinds = {(row["source_op"], row["target_op"]) for row in rows
                 if (row["source_phase"], row["target_phase"], row["kind"])
                 == ("forward", "backward", "RAW")}
        self.assertIn(("aten::relu", "aten::threshold_backward"), kinds)

    def test_the_table_holds_what_was_printed_last(self):
        self.json("graph", self.trace, "1-", "--dependencies")
        printed = self.json("graph", self.trace, "step:2", "--dependencies")
        stored = self.json("query", self.trace, "SELECT source_call, target_call, kind, buffer_id, "
                           "first_byte, last_byte FROM dependency ORDER BY rowid")
        self.assertGreater(len(printed), 3)
        self.assertEqual([{key: row[key] for key in stored[0]} for row in printed], stored)
        steps = self.json("query", self.trace, "SELECT DISTINCT step FROM call JOIN dependency ON "
                          "call_id = target_call")
        self.assertEqual(steps, [{"step": 2}])

    def test_csv_has_the_rows_of_json(self):
        rows = self.json("graph", self.trace, "step:1", "--dependencies")
        out = self.acltape("graph", self.trace, "step:1", "--dependencies", "--format", "csv").out
        read = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(read, [{key: "" if value is None else str(value)
                                 for key, value in row.items()} for row in rows])

    def test_a_selection_that_picks_nothing_is_said_so(self):
        result = self.acltape("graph", self.trace, "op:aten::none", "--dependencies", code=2)
        self.assertSentence(result, "op:aten::none")


if __name__ == "__main__":
    main()
