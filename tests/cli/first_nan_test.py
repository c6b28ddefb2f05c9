#!/usr/bin/env python3
"""Where NaN and infinities begin: the query first_nan, lint's notes, and values in diff."""
import os

from harness import TORCH_PYTHON, CommandTest, main

# Per step: log of negative numbers gives NaN, which spreads to z; -inf is made on purpose, and
# softmax of nothing else gives NaN from it; the addition of zeros stays finite.
PROGRAM = """
import torch
x = torch.full((4,), -1.0) + torch.zeros(4)
for i in range(3):
    y = torch.log(x)
    z = y + torch.ones(4)
    w = torch.full((2,), float("-inf")) + torch.zeros(2)
    v = torch.softmax(w, 0)
    x.mul_(1.0)
    f = torch.relu(x)
"""


class FirstNan(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "nan.db")
        cls("test_the_calls_that_turn_are_listed_and_those_after_them_are_not").record(
            cls.trace, TORCH_PYTHON, "-c", PROGRAM, payload="all")

    def turned(self, trace=None):
        return [(row["op"], row["turns"], row["inputs"])
                for row in self.json("query", trace or self.trace, "first_nan")]

    def test_the_calls_that_turn_are_listed_and_those_after_them_are_not(self):
        rows = self.turned()
        self.assertEqual(rows[0][:2], ("aten::log", "NaN"))
        self.assertEqual({row[:2] for row in rows},
                         {("aten::log", "NaN"), ("aten::full", "Inf"), ("aten::_softmax", "NaN")})
        self.assertEqual({row[2] for row in rows if row[0] == "aten::_softmax"}, {"Inf"})
        self.assertEqual({row[2] for row in rows if row[0] == "aten::log"}, {"finite"})
        self.assertEqual(len([row for row in rows if row[0] == "aten::log"]), 3)
        where = {row["op"]: row["where"] for row in self.json("query", self.trace, "first_nan")}
        self.assertEqual(where["aten::log"], "<string>:5")

    def test_a_call_that_writes_in_place_is_judged_by_what_was_there(self):
        trace = self.path("in_place.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch\nx = torch.zeros(3) - 1\n"
                    "x.log_()\nx.add_(1)\nx.copy_(torch.ones(3))\nx.sub_(2)\nx.sqrt_()", payload="all")
        self.assertEqual([row[0] for row in self.turned(trace)], ["aten::log_", "aten::sqrt_"])

    def test_contents_from_outside_are_not_known(self):
        trace = self.path("outside.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch\n"
                    "x = torch.frombuffer(bytearray(b'\\xff' * 16), dtype=torch.float32)\n"
                    "y = torch.relu(x)", payload="all")
        self.assertEqual(self.turned(trace), [("aten::relu", "NaN", "partly not known")])

    def test_a_trace_without_results_or_without_nan_has_no_rows(self):
        for payload, program in (("none", PROGRAM), ("all", "import torch\ntorch.ones(3) + 1")):
            trace = self.path("finite.db")
            self.record(trace, TORCH_PYTHON, "-c", program, payload=payload)
            self.assertEqual(self.turned(trace), [])

    def test_lint_notes_each_operator_once_and_counts_no_finding(self):
        report = self.json("lint", self.trace, "--no-results", "--fail-on", "never")
        notes = {row["op"]: row for row in report["notes"]}
        self.assertEqual(notes.keys(), {"aten::log", "aten::full", "aten::_softmax"})
        self.assertEqual(notes["aten::log"]["calls"], 3)
        self.assertIn("turns NaN; its inputs are finite", notes["aten::log"]["message"])
        self.assertEqual(notes["aten::log"]["where"], "<string>:5 (<module>)")
        self.assertIn("infinite, but not NaN", notes["aten::_softmax"]["message"])
        self.assertFalse([row for row in report["findings"] if "NaN" in row["message"]])

    def test_diff_shows_both_values_of_a_result_of_one_element(self):
        traces = []
        for value in (1.5, 2.5):
            traces.append(self.path(f"{value}.db"))
            self.record(traces[-1], TORCH_PYTHON, "-c",
                        f"import torch\nx = torch.ones(4).cumsum(0)\n"
                        f"y = x.sum() * {value}\nz = x * {value}",
                        payload="all")
        rows = self.json("diff", *traces, "--no-results", code=1)["calls"]
        one, four = (row["detail"] for row in rows if row["a_op"] == "aten::mul.Tensor")
        self.assertIn("A has 15, B has 25", one)
        self.assertNotIn("A has", four)


if __name__ == "__main__":
    main()
