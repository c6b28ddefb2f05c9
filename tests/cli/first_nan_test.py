#!/ usr / bin / env python3
"""Where NaN and infinities begin: the query first_nan, lint's rule and notes, and values in diff."""
import json
import os

from harness import TORCH_PYTHON, CommandTest, main
#Per step : log of negative numbers gives NaN, which spreads to z; - inf is made on purpose, and
#softmax of nothing else gives NaN from it; the addition of zeros stays finite.
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

    def test_tensors_of_one_block_are_told_apart_by_their_place(self):
        trace = self.path("block.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch\n"
                    "block = torch.zeros(8)\na, b = block[:4], block[4:]\n"
                    "n = torch.log(torch.zeros(8) - 1)\na.copy_(n[4:])\nb.copy_(torch.ones(4))\n"
                    "y = a + 1\nz = n[2:6] + 1", payload="all")
        self.assertEqual(self.turned(trace), [("aten::log", "NaN", "finite")])

    def test_a_call_with_many_results_is_one_row(self):
        trace = self.path("many.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch\n"
                    "torch._foreach_log([torch.zeros(3) - 1, torch.zeros(5) - 1])", payload="all")
        row, = self.json("query", trace, "first_nan")
        self.assertEqual((row["op"], row["nan_count"]), ("aten::_foreach_log", 8))

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

    def nan_findings(self, trace, *words):
        rows = self.json("lint", trace, "--no-results", "--fail-on", "never", *words)["findings"]
        return {row["where"]: row for row in rows if row["rule"] == "LINT-41"
}

    def test_lint_has_a_finding_for_each_line_that_turns_nan(self):
        found = self.nan_findings(self.trace)
        self.assertEqual(found.keys(), {"<string>:5 (<module>)", "<string>:8 (<module>)"})
        log, softmax = found["<string>:5 (<module>)"], found["<string>:8 (<module>)"]
        self.assertEqual((log["severity"], log["count"], softmax["count"]), ("notice", 3, 3))
        self.assertIn("has NaN in 4 elements of its results; its inputs are finite",
                      log["message"])
        self.assertIn("at <string>:5", log["message"])
        self.assertIn("its inputs hold infinities, but no NaN", softmax["message"])
        self.assertIn("first_nan", log["edit"])

    def test_lint_notes_infinities_once_for_each_operator(self):
        report = self.json("lint", self.trace, "--no-results", "--fail-on", "never")
        self.assertEqual([(row["op"], row["calls"]) for row in report["notes"]], [("aten::full", 3)])
        self.assertIn("turns Inf; its inputs are finite", report["notes"][0]["message"])

    def test_a_selection_leaves_out_what_lies_elsewhere(self):
        first = min(row["call_id"] for row in self.nan_findings(self.trace).values())
        self.assertIn(first, {row["call_id"] for row in
                              self.nan_findings(self.trace, "--region", f"{first}-{first}").values()})
        self.assertEqual(self.nan_findings(self.trace, "--region", "1-2"), {})

    def test_lint_counts_the_finding_for_other_tools(self):
        trace = self.path("turns.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch\n"
                    "x = torch.zeros(3) - 1\ny = torch.sqrt(x)\nz = y + x", payload="all")
        lint = ("lint", trace, "--no-results")
        self.assertIn("LINT-41", self.acltape(*lint, code=1).out)
        self.acltape(*lint, "--fail-on", "warning", code=1)
        self.acltape(*lint, "--fail-on", "error", code=0)
        sarif = json.loads(self.acltape(*lint, "--format", "sarif", code=1).out)["runs"][0]
        self.assertIn("LINT-41", [rule["id"] for rule in sarif["tool"]["driver"]["rules"]])
        result, = sarif["results"]
        self.assertEqual((result["ruleId"], result["level"]), ("LINT-41", "warning"))
        self.assertEqual(result["locations"][0]["physicalLocation"]["region"]["startLine"], 3)
        self.assertIn("LINT-41", self.acltape(*lint, "--format", "junit", code=1).out)
        known = self.path("known.json")
        self.acltape(*lint, "--write-baseline", known)
        self.acltape(*lint, "--baseline", known)
        kept = self.acltape("lint", trace, code=1)
        self.assertEqual([row["rule"] for row in self.json("query", trace, "findings")],
                         ["LINT-41"], kept)

    def test_nan_on_purpose_and_masks_are_no_findings(self):
        programs = {
            "mask": "m = torch.ones(2, 2).tril() == 0\n"
                    "torch.softmax(torch.zeros(2, 2).masked_fill(m, float('-inf')), 1)",
            "fill": "x = torch.full((3,), float('nan'))\nx = torch.zeros(3).fill_(float('nan'))\n"
                    "torch.nan_to_num(x)",
            "finite": "torch.log(torch.ones(3))"}
        for name, program in programs.items():
            with self.subTest(name):
                trace = self.path(f"{name}.db")
                self.record(trace, TORCH_PYTHON, "-c", f"import torch\n{program}", payload="all")
                self.assertEqual(self.nan_findings(trace), {})

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
