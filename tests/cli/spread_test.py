"""replay --inputs golden and --spread on a program whose operators are made wrong on purpose."""
import os

import harness

FAULT = "aclnnMm #2 flip=23"  # a fault in a float of step 1: half or twice as much


class Spread(harness.CommandTest):
    def setUp(self):
        self.trace = self.trace_of_steps("spread.db")
        self.faulty = {**os.environ, "ACLTAPE_SOFT_FAULTS": FAULT}

    def calls(self, op, steps):
        rows = self.json("query", self.trace, "SELECT call_id FROM call WHERE leaf AND op LIKE "
                         f"'aten::{op}%' AND step IN ({', '.join(map(str, steps))})")
        return {row["call_id"] for row in rows}

    def differing(self, *words):
        report = self.json("replay", self.trace, *words, code=1, env=self.faulty)
        return {row["call_id"] for row in report["differences"]}

    def test_golden_inputs_leave_the_call_that_is_wrong_by_itself(self):
        mm = self.calls("mm", [1])
        self.assertEqual(self.differing("--inputs", "golden"), mm)
        carried = self.differing()
        self.assertLess(mm, carried)
        self.assertLessEqual(self.calls("add_", [1, 2, 3]), carried)

    def test_spread_tells_own_errors_from_inherited_ones_and_shows_growth_and_ends(self):
        report = self.json("replay", self.trace, "--spread", code=1, env=self.faulty)
        summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
        mm, = self.calls("mm", [1])
        own, = report["wrong_calls"]
        self.assertEqual((own["call_id"], own["op"], own["wrong"]), (mm, "aten::mm", "by itself"))
        inherited = self.differing() - {mm}
        self.assertEqual(summary["calls that inherit"], len(inherited))
        self.assertEqual(own["reaches_calls"], len(inherited))
        self.assertEqual((own["in_steps"], own["the_last_of_them"]), (3, max(inherited)))
        self.assertEqual(report["unexplained"], [])
        self.assertEqual(sum(row["calls"] for row in report["growth"]), len(inherited) + 1)
        self.assertEqual(report["growth"][0]["reads_away"], "0")
        # The tanh is one read away, and bounded where the product is not.
        self.assertLess(report["growth"][1]["max_rel"], report["growth"][0]["max_rel"])
        ends = {row["call_id"] for row in report["where_errors_end"]}
        self.assertEqual(ends, self.calls("argmax", [1]) - inherited)

    def test_captured_an_error_stays_in_its_graph(self):
        report = self.json("replay", self.trace, "--mode", "captured", "--spread", code=1,
                           env=self.faulty)
        first, *others = report["wrong_calls"]
        self.assertEqual((first["op"], first["wrong"]), ("aten::mm", "by itself"))
        self.assertTrue(others)
        for row in others:
            self.assertEqual(row["step"], first["step"])
            self.assertEqual(row["wrong"], "reads one of its graph that is wrong too")
        self.assertEqual(report["unexplained"], [])

    def test_the_command_that_is_printed_shows_it_again(self):
        for words in ([], ["--mode", "captured"]):
            report = self.json("replay", self.trace, *words, "--spread", code=1, env=self.faulty)
            command = {row["quantity"]: row["value"] for row in report["summary"]}["reproduce"]
            self.assertIn("ACLTAPE_SOFT_FAULTS", command)
            again = self.reproduces(command)
            self.assertIn('"by itself"', again.out, again)

    def test_without_a_fault_nothing_spreads(self):
        report = self.json("replay", self.trace, "--spread")
        self.assertEqual(report["wrong_calls"] + report["growth"] + report["where_errors_end"], [])

    def test_what_does_not_fit_is_one_sentence(self):
        for words in (["--outputs", "step"], ["--data", "synthesised"], ["--repetitions", "2"],
                      ["--inputs", "golden"], ["--edit", "LINT-09"], ["--streams", "flat"]):
            result = self.acltape("replay", self.trace, "--spread", *words, code=2)
            self.assertSentence(result, "--spread", words[0])

    def test_a_trace_without_results_is_refused_with_the_option_that_keeps_them(self):
        trace = self.path("inputs.db")
        self.record(trace, harness.TORCH_PYTHON, self.script(harness.STEPS), payload="inputs")
        for words in (["--inputs", "golden"], ["--spread"]):
            result = self.acltape("replay", trace, *words, code=3)
            self.assertSentence(result, "aten::", "no recorded result", "--payload all")


if __name__ == "__main__":
    harness.main()
