#!/usr/bin/env python3
"""acltape bisect A --against B: which edit of a script, executed in the place of A's call, gives a
step other results.

programs/versions.py has a flag for each edit, and what B recorded is the judge of what was executed:
with B's form of the edited calls the step has to give B's result.
"""
import json
import os
import shutil
import sqlite3
import struct

from harness import TORCH_PYTHON, WORKLOADS, CommandTest, main

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


class AgainstTest(CommandTest):
    def versions(self, name, *flags, payload="all"):
        path = self.path(name + ".db")
        if not os.path.exists(path):
            self.record(path, TORCH_PYTHON, os.path.join(PROGRAMS, "versions.py"), *flags,
                        payload=payload, options=["--steps-from", "step"])
        return path

    def against(self, a, b, *words, code, **options):
        """The printed tables, and the summary as a dictionary."""
        report = self.json("bisect", a, "--against", b, "--no-journal", *words, code=code,
                           **options)
        return report, {row["quantity"].strip(): row["value"] for row in report["summary"]}

    def calls(self, trace, op):
        with sqlite3.connect(trace) as database:
            return [row[0] for row in database.execute(
                "SELECT call_id FROM call WHERE leaf = 1 AND op = ? ORDER BY call_id", [op])]

    def pair(self, report, call):
        """The row of a call of A."""
        return [row for row in report["pairs"] if row["a_call"] == str(call)][0]


# A tensor at the end of more memory than the device has, as an adapter's pool reserves it.
IN_A_POOL = """import sys, torch
x = torch.empty(0).set_(torch.UntypedStorage(256 << 20), (64 << 20) - 1024, (1024,), (1,))
x.copy_(torch.arange(1024.0))
for _ in range(3):
    with torch.profiler.record_function("step"):
        y = (torch.nn.functional.leaky_relu(x - 512, float(sys.argv[1])) * 2).sum()
"""


class AgainstVersions(AgainstTest):
    def test_a_call_takes_no_more_memory_than_its_tensors_span(self):
        traces = []
        for slope in ("0.01", "0.3"):
            traces.append(self.path(f"pool-{slope}.db"))
            self.record(traces[-1], TORCH_PYTHON, self.script(IN_A_POOL), slope, payload="all",
                        options=["--steps-from", "step"])
        small = {**os.environ, "ACLTAPE_SOFT_MEMORY": str(128 << 20)}
        report, _ = self.against(*traces, code=1, env=small)
        self.assertIn("negative_slope 0.01 -> 0.3", report["found"][0]["what"])

    def setUp(self):
        self.plain = self.versions("plain")

    def assertFound(self, other, what, step=0):
        report, summary = self.against(self.plain, other, code=1)
        self.assertEqual(len(report["found"]), 1, report)
        self.assertEqual(report["found"][0]["what"], what)
        self.assertIn({"note": f"step {step} of {self.plain} was executed"}, report["notes"])
        again = self.reproduces(summary["reproduce"])
        self.assertIn(f"found: {what} differs on its own", again.out)
        return report

    def test_equal_traces_leave_nothing_to_alter(self):
        report, summary = self.against(self.plain, self.plain, code=0)
        self.assertEqual(summary["bisected calls that differ"], 0)
        self.assertNotIn("found", {key for key in report if report[key]})

    def test_the_changed_operator_is_found_and_the_inserted_one_is_not_blamed(self):
        other = self.versions("both", "--insert", "5", "--relu", "8")
        gelu, relu = self.calls(self.plain, "aten::gelu")[8], self.calls(other, "aten::relu")[0]
        report = self.assertFound(other, f"call {gelu} aten::gelu of A in the form of call {relu} "
                                  "aten::relu of B (op aten::gelu -> aten::relu)")
        pair = self.pair(report, gelu)
        self.assertEqual(pair["b_call"], str(relu))
        self.assertEqual((pair["a_here"], pair["b_here"]), ("reproduced", "reproduced"))
        self.assertEqual(pair["conclusion"],
                         "another result from equal inputs: op aten::gelu -> aten::relu")

    def test_a_wrong_argument_is_found_with_both_values(self):
        other = self.versions("slope", "--slope", "0.3")
        call, = self.calls(self.plain, "aten::leaky_relu")[:1]
        report = self.assertFound(other, f"call {call} aten::leaky_relu of A in the form of call "
                                  f"{call} of B (negative_slope 0.01 -> 0.3)")
        # The execution gives what B recorded.
        here = json.loads(report["found"][0]["evidence"])["here"]
        with sqlite3.connect(other) as database:
            first, = database.execute(
                "SELECT max FROM snapshot JOIN call USING (call_id) WHERE op = 'aten::sum' AND "
                "moment = 'after' ORDER BY call_id LIMIT 1").fetchone()
        self.assertEqual(struct.pack("f", float(here)), struct.pack("f", first))

    def test_an_inserted_call_is_one_element_with_all_who_use_its_result(self):
        other = self.versions("scaled", "--scale", "4")
        product = self.calls(other, "aten::mul.Tensor")[5]
        users = [self.calls(self.plain, "aten::addmm")[5], self.calls(self.plain, "aten::mm")[5],
                 self.calls(self.plain, "aten::add.Tensor")[5]]
        report = self.assertFound(other, f"call {product} aten::mul.Tensor, which only B has, before "
                                  f"calls {users[0]} {users[1]} {users[2]} of A")
        self.assertEqual(report["only_one_side"][0]["b_call"], str(product))

    def test_a_deleted_layer_is_one_element(self):
        other = self.versions("dropped", "--drop", "5")
        last = self.calls(self.plain, "aten::add.Tensor")[5]
        users = [self.calls(self.plain, op)[6] for op in ("aten::addmm", "aten::mm",
                                                          "aten::add.Tensor")]
        self.assertFound(other, f"call {last} aten::add.Tensor, which only A has, before calls "
                         f"{users[0]} {users[1]} {users[2]} of A")

    def test_calls_whose_shapes_differ_take_the_other_form_together(self):
        eight, six = self.versions("eight", "--rows", "8"), self.versions("six", "--rows", "6")
        softmax, = self.calls(eight, "aten::_softmax")[:1]
        product = self.calls(eight, "aten::mm")[12]
        report, summary = self.against(eight, six, code=1)
        self.assertEqual(report["found"][0]["what"],
                         f"call {softmax} aten::_softmax of A in the form of call {softmax} of B (shape of self "
                         "[4, 8] -> [4, 6]; shape of out [4, 8] -> [4, 6]), with what reads it up to call "
                         f"{product} aten::mm")
        self.assertEqual(self.pair(report, softmax)["conclusion"],
                         f"executed in B's form together with call {product}, because its shape differs")
        self.assertIn("found", self.reproduces(summary["reproduce"]).out)

    def test_other_forms_of_one_computation_change_nothing(self):
        for name, flag, pairs in (("unfused", "--unfused", 12), ("inplace", "--inplace", 12)):
            report, summary = self.against(self.plain, self.versions(name, flag), code=0)
            self.assertEqual(summary["bisected calls that differ"], pairs, name)
            self.assertEqual({row["conclusion"] for row in report["pairs"]},
                             {"the same result from equal inputs"}, name)

    def test_of_two_edits_both_are_found(self):
        other = self.versions("two", "--slope", "0.3", "--relu", "8")
        report, _ = self.against(self.plain, other, "--causes", "2", code=1)
        self.assertEqual(len(report["found"]), 2)
        for what, row in zip(("negative_slope", "aten::relu"),
                             sorted(report["found"], key=lambda row: row["element"])):
            self.assertIn(what, row["what"])

    def test_a_difference_before_the_first_step_is_looked_for_there(self):
        other = self.versions("seed", "--seed", "8")
        report, summary = self.against(self.plain, other, code=1)
        call = self.calls(self.plain, "aten::randn")[0]
        what = f"call {call} aten::randn of A in the form of call {call} of B (other random numbers)"
        self.assertEqual(report["found"][0]["what"], what)
        self.assertIn("outside of steps were bisected", report["notes"][0]["note"])
        self.assertIn(what, self.reproduces(summary["reproduce"]).out)
        # In a step of its own nothing is changed.
        self.against(self.plain, other, "--run-steps", "1", code=0)

    def test_another_step_can_be_chosen(self):
        other = self.versions("both", "--insert", "5", "--relu", "8")
        gelu = self.calls(self.plain, "aten::gelu")[8 + 12 * 2]
        report, summary = self.against(self.plain, other, "--run-steps", "2", code=1)
        self.assertIn(f"call {gelu} aten::gelu of A", report["found"][0]["what"])
        self.assertIn("--run-steps 2", summary["reproduce"])

    def test_what_was_found_is_kept_in_the_good_trace(self):
        trace, other = self.path("kept.db"), self.versions("slope", "--slope", "0.3")
        shutil.copy(self.plain, trace)
        with sqlite3.connect(trace) as database:
            database.execute("DELETE FROM finding")  # findings of other tests
        self.against(trace, other, "--no-results", code=1)
        query = "SELECT rule, call_id, verdict, evidence FROM finding WHERE rule LIKE 'BISECT%'"
        self.assertEqual(self.json("query", trace, query), [])
        _, summary = self.against(trace, other, code=1)
        finding, = self.json("query", trace, query)
        self.assertEqual((finding["rule"], finding["verdict"]), ("BISECT-AGAINST", "reproduced"))
        self.assertEqual(finding["call_id"], self.calls(trace, "aten::leaky_relu")[0])
        self.assertIn(summary["reproduce"], finding["evidence"])

    def test_a_device_that_does_not_give_what_was_recorded_is_told_from_the_edit(self):
        other = self.versions("both", "--insert", "5", "--relu", "8")
        environment = {**os.environ, "ACLTAPE_SOFT_FAULTS": "aclnnRelu p=1 flip=20"}
        report, _ = self.against(self.plain, other, code=1, env=environment)
        pair = self.pair(report, self.calls(self.plain, "aten::gelu")[8])
        self.assertEqual((pair["a_here"], pair["b_here"]), ("reproduced", "not reproduced"))
        self.assertIn("B's form does not give B's record here", pair["conclusion"])

    def test_a_recorded_difference_that_no_execution_shows_cannot_be_judged(self):
        other = self.path("noise.db")
        shutil.copy(self.plain, other)
        gelu = self.calls(self.plain, "aten::gelu")
        with sqlite3.connect(other) as database:  # as if noise had made it
            digest, = database.execute("SELECT digest FROM snapshot WHERE call_id = ? AND "
                                       "moment = 'after'", [gelu[3]]).fetchone()
            database.execute("UPDATE snapshot SET digest = ? WHERE call_id = ? AND "
                             "moment = 'after'", [digest, gelu[4]])
        report, summary = self.against(self.plain, other, code=125)
        self.assertIn("cannot judge: the diff names call", summary["verdict"])
        self.assertIn("no call that differs gives another result in B's form on this device", summary["verdict"])
        pair = self.pair(report, gelu[4])
        self.assertEqual(pair["cause"], "origin")
        self.assertIn("the device or noise made the difference", pair["conclusion"])

    def test_without_recorded_values_the_diff_names_what_differs(self):
        a = self.versions("bare", payload="digest")
        b = self.versions("bare_relu", "--relu", "8", payload="digest")
        report, summary = self.against(a, b, code=125)
        self.assertIn("--payload", summary["not executed because"])
        self.assertIn("cannot judge", summary["verdict"])
        self.assertEqual(report["named_by_the_diff"][0]["change"], "op aten::gelu -> aten::relu")
        _, summary = self.against(a, a, code=0)
        self.assertIn("names no difference", summary["verdict"])


class AgainstErrors(AgainstTest):
    def test_wrong_words_get_one_sentence(self):
        plain = self.versions("plain")
        other = self.versions("slope", "--slope", "0.3")
        for words in (["--plan", "p.json"], ["--check", "true"], ["--bad", "plan:p.json"],
                      ["--good", "plan:p.json"], ["--plant", "wrong_bits@1"], ["--emit", "folder"],
                      ["--what", "regions"], ["--in-graph"]):
            result = self.acltape("bisect", plain, "--against", other, *words, code=2)
            self.assertSentence(result, "--against", words[0])
        for words, code, said in (
                (["--run-steps", "1,2"], 2, "one step"), (["--run-steps", "9"], 2, "no step"),
                (["--calls", "op:aten::sum"], 2, "op:aten::sum")):
            result = self.acltape("bisect", plain, "--against", other, "--no-journal", *words,
                                  code=code)
            self.assertSentence(result, said)

    def test_what_is_no_other_recording_gets_one_sentence(self):
        plain = self.versions("plain")
        self.assertSentence(self.acltape("bisect", plain, "--against", self.path("none.db"),
                                         code=3), "none.db")
        text = self.script("nothing")
        self.assertSentence(self.acltape("bisect", plain, "--against", text, code=3), text)
        stranger = self.path("stranger.db")
        self.record(stranger, TORCH_PYTHON, "-c", "import torch; torch.ones(3).cumsum(0)",
                    payload="all")
        self.assertSentence(self.acltape("bisect", plain, "--against", stranger, code=2),
                            "no call in common")


class AgainstTypes(AgainstTest):
    """The decoder in float32 against itself in float16."""

    def decoder(self, name, *words):
        path = self.path(name + ".db")
        if not os.path.exists(path):
            self.record(path, TORCH_PYTHON, *words, "--tokens", "6", payload="all")
        return path

    def setUp(self):
        self.single = self.decoder("float", os.path.join(WORKLOADS, "decoder.py"))
        self.half = os.path.join(PROGRAMS, "decoder_half.py")

    def test_rounding_is_no_difference(self):
        report, summary = self.against(self.single, self.decoder("half", self.half), code=0)
        self.assertGreater(summary["bisected calls that differ"], 50)
        self.assertEqual({row["a_here"] for row in report["pairs"]}, {"reproduced"})
        self.assertEqual({row["b_here"] for row in report["pairs"]}, {"reproduced"})
        for row in report["pairs"]:  # one rounding each, half a unit of 2^-10
            self.assertLess(row["relative_error"] or 0, 2 ** -10)

    def test_the_calls_that_leave_the_range_of_rounding_are_found(self):
        faulty = self.decoder("faulty", self.half, "--fault=23")
        products = self.calls(faulty, "aten::mul.Tensor")
        report, summary = self.against(self.single, faulty, code=1)
        self.assertTrue(report["found"][0]["what"].startswith(
            f"calls {products[0]} {products[1]} aten::mul.Tensor aten::mul.Tensor, which only B "
            "has, before call "), report["found"])
        self.assertLessEqual(summary["experiments"], summary["bound for one cause"])
        self.reproduces(summary["reproduce"])

    def test_a_difference_that_ends_inside_the_step_is_said_to(self):
        # With the first token attention looks at a single one, so that other weights change
        # nothing.
        report, _ = self.against(self.single, self.decoder("hidden", self.half, "--fault"), code=0)
        self.assertIn({"note": "what the diff names first does not reach the results of the step"},
                      report["notes"])


if __name__ == "__main__":
    main()
