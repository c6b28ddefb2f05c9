#!/usr/bin/env python3
"""acltape diff: versions of one script, element types and payload policies, on recorded programs.

programs/versions.py has a flag for each edit, so that every test knows which calls were inserted,
deleted or changed, and asserts exactly which call is named.
"""
import json
import os
import shlex
import sqlite3

from harness import TORCH_PYTHON, WORKLOADS, CommandTest, main

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


def summary(report):
    return {row["quantity"].strip(): row["value"] for row in report["summary"]}


class DiffTest(CommandTest):
    def versions(self, name, *flags, payload="all", steps=True):
        path = self.path(name + ".db")
        if not os.path.exists(path):
            self.record(path, TORCH_PYTHON, os.path.join(PROGRAMS, "versions.py"), *flags,
                        payload=payload, options=["--steps-from", "step"] if steps else [])
        return path

    def diff(self, a, b, *words, code=0):
        return self.json("diff", a, b, *words, code=code)

    def leaves(self, trace, op):
        """call ids of an operator, in order."""
        with sqlite3.connect(trace) as database:
            return [row[0] for row in database.execute(
                "SELECT call_id FROM call WHERE leaf = 1 AND op = ? ORDER BY call_id", [op])]

    def assertReproduces(self, report):
        """The printed command ends the same way and names the same call."""
        command = summary(report)["reproduce"]
        again = self.reproduces(command)
        self.assertIn(summary(report)["first divergence"], again.out, again)
        # Options may come in another order, because the printed one was added to them.
        again_printed = summary(json.loads(again.out))["reproduce"]
        self.assertEqual(sorted(shlex.split(again_printed)), sorted(shlex.split(command)), again)


class DiffVersions(DiffTest):
    def setUp(self):
        self.plain = self.versions("plain")

    def test_a_trace_is_equal_to_itself(self):
        report = self.diff(self.plain, self.plain)
        facts = summary(report)
        self.assertRegex(facts["verdict"], r"^equal: all \d+ compared results, of \d+ aligned calls$")
        self.assertEqual(facts["results equal"], facts["calls that use memory, A"])
        self.assertEqual(report["calls"], [])

    def test_an_inserted_call_is_only_an_insertion_and_the_changed_one_is_named(self):
        other = self.versions("both", "--insert", "5", "--relu", "8")
        report = self.diff(self.plain, other, code=1)
        inserted = [(row["b_op"], row["relation"], row["cause"]) for row in report["calls"]
                    if row["relation"].startswith("inserted")]
        self.assertEqual(inserted, [("aten::abs", "inserted, not used", None),
                                    ("aten::mean", "inserted, not used", None)] * 3)
        gelu, relu = self.leaves(self.plain, "aten::gelu"), self.leaves(other, "aten::relu")
        self.assertEqual(summary(report)["first divergence"],
                         f"call {gelu[8]} aten::gelu of A, call {relu[0]} aten::relu of B")
        self.assertEqual(summary(report)["cause"], "structural")
        # One line is one place, in all three steps.
        self.assertEqual([(row["a_call"], row["b_call"], row["rows"]) for row in report["origins"]],
                         [(str(gelu[8]), str(relu[0]), 3)])
        # After the change nothing else is blamed: layers 8 to 11 inherit it, up to the host.
        self.assertGreater(report["origins"][0]["inherited"], 15)
        self.assertReproduces(report)

    def test_an_insertion_for_nobody_is_no_difference(self):
        report = self.diff(self.plain, self.versions("logged", "--insert", "5"))
        self.assertEqual(summary(report)["inserted in B"], 6)
        self.assertEqual(summary(report)["results different"], 0)

    def test_an_inserted_call_whose_result_is_used_is_where_it_begins(self):
        other = self.versions("scaled", "--scale", "4")
        report = self.diff(self.plain, other, code=1)
        products = self.leaves(other, "aten::mul.Tensor")
        self.assertEqual(summary(report)["first divergence"],
                         f"call {products[5]} aten::mul.Tensor of B")
        # The line of a call that only B has is that of B.
        self.assertRegex(summary(report)["where"], r"versions.py:\d+ \(layer\)")
        self.assertEqual([row["where"] for row in report["origins"]], [summary(report)["where"]])
        self.assertReproduces(report)

    def test_a_changed_argument_is_named_with_both_values(self):
        report = self.diff(self.plain, self.versions("slope", "--slope", "0.3"), code=1)
        facts = summary(report)
        self.assertEqual(facts["change"], "negative_slope 0.01 -> 0.3")
        self.assertEqual(facts["cause"], "structural")
        self.assertReproduces(report)

    def test_a_deleted_layer_does_not_shift_the_others(self):
        other = self.versions("dropped", "--drop", "5")
        report = self.diff(self.plain, other, code=1)
        facts = summary(report)
        self.assertEqual((facts["deleted from A"], facts["inserted in B"],
                          facts["of these changed"]), (18, 0, 0))
        products = self.leaves(self.plain, "aten::addmm")
        self.assertEqual(facts["first divergence"], f"call {products[5]} aten::addmm of A")
        self.assertReproduces(report)
        # The other way round the layer is inserted.
        report = self.diff(other, self.plain, code=1)
        self.assertEqual(summary(report)["inserted in B"], 18)
        self.assertReproduces(report)

    def test_sums_apart_from_their_products_are_split_and_equal(self):
        report = self.diff(self.plain, self.versions("unfused", "--unfused"))
        facts = summary(report)
        self.assertEqual(facts["of these fused, split or rewritten"], 36)
        self.assertEqual((facts["inserted in B"], facts["deleted from A"]), (0, 0))
        self.assertEqual({row["detail"] for row in report["calls"]},
                         {"aten::addmm -> aten::mm + aten::add.Tensor"})
        fused = self.diff(self.versions("unfused", "--unfused"), self.plain)
        self.assertEqual({row["relation"] for row in fused["calls"]}, {"fused"})

    def test_in_place_and_reordered_variants_are_the_same_computation(self):
        for name, flag in (("inplace", "--inplace"), ("reordered", "--reorder")):
            report = self.diff(self.plain, self.versions(name, flag), "--all")
            facts = summary(report)
            self.assertEqual(facts["results equal"], facts["calls that use memory, A"], name)
            self.assertEqual((facts["inserted in B"], facts["deleted from A"]), (0, 0), name)
        notes = {row["detail"] for row in self.diff(
            self.plain, self.versions("inplace", "--inplace"), "--all")["calls"]}
        self.assertIn("aten::add.Tensor -> aten::add_.Tensor", notes)

    def test_digests_alone_name_the_same_call(self):
        a = self.versions("digest", payload="digest")
        b = self.versions("digest_relu", "--relu", "8", payload="digest")
        report = self.diff(a, b, code=1)
        gelu = self.leaves(a, "aten::gelu")
        self.assertIn(f"call {gelu[8]} aten::gelu of A", summary(report)["first divergence"])
        self.assertIn("another digest", report["calls"][0]["detail"])
        self.assertReproduces(report)

    def test_one_side_may_keep_values_and_the_other_digests(self):
        report = self.diff(self.plain, self.versions("digest", payload="digest"))
        self.assertRegex(summary(report)["verdict"], "^equal: all ")

    def test_without_any_values_a_changed_operator_is_the_difference(self):
        a = self.versions("bare", payload="none")
        b = self.versions("bare_relu", "--relu", "8", payload="none")
        report = self.diff(a, b, code=1)
        self.assertIn("aten::relu of B", summary(report)["first divergence"])
        self.assertIn("no recorded result in common", report["notes"][0]["note"])
        self.assertReproduces(report)

    def test_recordings_that_keep_few_results_have_no_verdict(self):
        few = self.versions("inputs", payload="inputs")
        told = self.acltape("diff", few, few, code=125)
        self.assertRegex(told.out, r"verdict +not known: \d+ calls are aligned, and compared results tell of")
        self.assertRegex(told.err, r"there is no verdict: .* of the \d+ leaves .*; for both traces record with "
                                   r"--payload all\n")

    def test_steps_that_one_side_lacks_are_deleted_as_a_whole(self):
        other = self.versions("short", "--batches", "2")
        report = self.diff(self.plain, other, "--steps", code=125)
        self.assertRegex(summary(report)["verdict"], "^not known: ")
        rows = [(row["a_step"], row["b_step"], row["aligned"], row["deleted"])
                for row in report["steps"] if row["a_step"] is not None]
        self.assertEqual([row[:2] for row in rows], [(0, 0), (1, 1), (2, None)])
        self.assertEqual([row[3] for row in rows], [0, 0, rows[0][2]])

    def test_without_steps_the_whole_program_is_aligned(self):
        a = self.versions("stepless", steps=False)
        b = self.versions("stepless_both", "--insert", "5", "--relu", "8", steps=False)
        report = self.diff(a, b, code=1)
        gelu = self.leaves(a, "aten::gelu")
        self.assertIn(f"call {gelu[8]} aten::gelu of A", summary(report)["first divergence"])
        self.assertEqual(summary(report)["inserted in B"], 6)

    def test_picked_calls_alone_are_compared(self):
        report = self.diff(self.plain, self.plain, "--calls", "step:1/op:aten::addmm")
        self.assertEqual(summary(report)["aligned"], 12)
        self.assertEqual({row["a_op"] for row in report["calls"]}, {"aten::addmm"})


class DiffResults(DiffTest):
    def kept(self, trace):
        return self.json("query", trace, "--name", "differences")

    def test_what_is_not_equal_is_kept_in_the_reference_and_shown_by_a_query(self):
        a, b = self.versions("kept"), self.versions("kept_slope", "--slope", "0.3")
        self.diff(a, b, "--no-results", code=1)
        self.assertEqual(self.kept(a), [])
        report = self.diff(a, b, "--rows", "0", code=1)
        rows = self.kept(a)
        different = [row for row in report["calls"] if row["verdict"] == "different"]
        self.assertEqual(len(rows), summary(report)["results different"])
        first = rows[0]
        self.assertEqual((first["op"], first["cause"], first["change"], first["output"]),
                         ("aten::leaky_relu", "structural", "negative_slope 0.01 -> 0.3", "out"))
        self.assertEqual(first["call_id"], int(different[0]["a_call"]))
        self.assertEqual(json.loads(first["other_calls"]), [int(different[0]["b_call"])])
        self.assertEqual(first["max_ulp"], different[0]["max_ulp"])
        self.assertEqual({row["cause"] for row in rows}, {"structural", "inherited"})
        # Each has the position of the result and the run that says which trace it was.
        missing = self.json("query", a, "SELECT count(*) AS n FROM comparison c LEFT JOIN snapshot s "
                            "ON s.call_id = c.call_id AND s.position = c.position AND s.moment = "
                            "'after' WHERE s.call_id IS NULL AND json_extract(c.metrics, '$.output') "
                            "<> 'host value'")
        self.assertEqual(missing, [{"n": 0}])
        run, = self.json("query", a, "SELECT mode, exit_code, json_extract(options, '$.against') AS b "
                         "FROM run")
        self.assertEqual(run, {"mode": "diff", "exit_code": 1, "b": b})
        # Nothing in the other one; of equal traces no rows.
        self.assertEqual(self.kept(b), [])
        self.diff(a, a)
        self.assertEqual(self.kept(a), [])


class DiffErrors(DiffTest):
    def test_wrong_words_get_one_sentence(self):
        plain = self.versions("plain")
        self.assertSentence(self.acltape("diff", plain, plain, "--calls", "op:aten::nothing",
                                         code=2), "no call of", "op:aten::nothing")
        self.assertSentence(self.acltape("diff", plain, plain, "--standard", "loose", code=2),
                            "loose")
        self.assertSentence(self.acltape("diff", plain, self.path("missing.db"), code=3),
                            "missing.db")


class DiffTypes(DiffTest):
    """The decoder in float32 against itself in float16."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test = cls("test_rounding_is_no_divergence")
        cls.traces = {}
        half = os.path.join(PROGRAMS, "decoder_half.py")
        for name, words in {"float": [os.path.join(WORKLOADS, "decoder.py")], "half": [half],
                            "fault": [half, "--fault"]}.items():
            for payload in ("all", "digest"):
                path = os.path.join(cls.folder, f"{name}-{payload}.db")
                test.record(path, TORCH_PYTHON, *words, "--tokens", "6", payload=payload)
                cls.traces[name, payload] = path

    def test_rounding_is_no_divergence(self):
        for payload in ("all", "digest"):
            report = self.diff(self.traces["float", payload], self.traces["half", payload])
            facts = summary(report)
            self.assertEqual(facts["verdict"], "no meaningful divergence", payload)
            self.assertEqual(facts["aligned"], facts["calls that use memory, A"], payload)
            # The program in half has more calls, and all of them are casts.
            self.assertEqual(facts["inserted in B"], facts["of both copies and casts"], payload)

    def test_the_call_that_leaves_the_range_of_rounding_is_named(self):
        products = self.fault_products()
        for payload in ("all", "digest"):
            report = self.diff(self.traces["float", payload], self.traces["fault", payload],
                               code=1)
            self.assertEqual(summary(report)["first divergence"],
                             f"call {products[0]} aten::mul.Tensor of B", payload)
            self.assertReproduces(report)

    def fault_products(self):
        return self.leaves(self.traces["fault", "all"], "aten::mul.Tensor")


if __name__ == "__main__":
    main()
