#!/usr/bin/env python3
"""A decoder of an inference library's shape: its tokens are those of a reference in double precision,
eager and as a captured graph, with the same bits. Recorded it replays in every way, and has a plan. The
environment is that of recorded_test.py.
"""
import json
import subprocess
import unittest

import acl_programs
import recorded_test
import trimmed_steps
from acl_programs import Run
from recorded_test import ACLTAPE

EAGER, CAPTURED = Run("decoder", "decoder.cpp"), Run("decoder_captured", "decoder.cpp", ("--captured",))
WAYS = [(mode, streams) for mode in ("eager", "captured") for streams in ("recorded", "flat")]
STEPS = 19  # a prompt of 4 tokens, and 16 new ones, of which the last is not looked at
# Operators by which a program of this shape is told; all have a kernel.
OPERATORS = {"aclnnEmbedding", "aclnnIndexSelect", "aclnnRmsNorm", "aclnnMm", "aclnnRotaryPositionEmbedding",
             "aclnnCast", "aclnnScatterPaKvCache", "aclnnFusedInferAttentionScoreV3", "aclnnMatmul",
             "aclnnTransMatmulWeight", "aclnnConvertWeightToINT4Pack", "aclnnWeightQuantBatchMatmulV2",
             "aclnnSwiGlu", "aclnnInplaceAdd",
             "aclnnArgMax"}


class Decoder(recorded_test.RecordedTest):
    def shown(self, run, **environment):
        """Returns the output of the program; it ends with 0 only when tokens and logits are those of its reference."""
        done = subprocess.run([self.build(run.source), *run.options], capture_output=True, text=True,
                              timeout=120, env=acl_programs.environment(environment))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\Atokens:( \d+){16}\ngreatest error: .*\ndigest: [0-9a-f]{16}\nok\n\Z")
        return done.stdout

    def acltape(self, *words):
        done = subprocess.run([ACLTAPE, *words, "--format", "json"], capture_output=True, text=True,
                              timeout=240, env=acl_programs.environment())
        evidence = f"$ acltape {' '.join(words)}\n{done.stdout}{done.stderr}"
        self.assertEqual(done.returncode, 0, evidence)
        return json.loads(done.stdout), evidence

    def assert_equal_replay(self, report, evidence):
        summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
        self.assertGreater(summary["outputs equal"], 0, evidence)
        self.assertEqual(summary["outputs different"], 0, evidence)
        return summary

    def test_tokens_are_those_of_the_reference_with_the_same_bits_eager_and_captured(self):
        eager = self.shown(EAGER)
        print(eager, end="")
        self.assertGreater(len(set(eager.splitlines()[0].split()[1:])), 8, "the tokens say little")
        self.assertEqual(self.shown(CAPTURED), eager)
        for setting in ({"ACLTAPE_SOFT_POISON": "1"}, {"ACLTAPE_SOFT_JITTER": "7"},
                        {"ACLTAPE_SOFT_PROFILE": "small"}):
            for run in (EAGER, CAPTURED):
                with self.subTest(setting=setting, run=run.name):
                    self.assertEqual(self.shown(run, **setting), eager)

    def test_recorded_it_replays_eager_and_captured(self):
        for run in (EAGER, CAPTURED):
            trace = self.record(run)
            called = {op for op, in self.ask(trace, "SELECT DISTINCT op FROM call WHERE op GLOB 'aclnn*'")}
            self.assertEqual(called, OPERATORS)
            self.assertEqual(self.ask(trace, "SELECT * FROM ledger WHERE severity IN ('data_loss', 'error')"), [])
            for mode, streams in WAYS:
                with self.subTest(run=run.name, mode=mode, streams=streams):
                    summary = self.assert_equal_replay(*self.acltape("replay", trace, "--mode", mode,
                                                                     "--streams", streams))
                    self.assertEqual(summary["substituted by recorded outputs"], 0)
                    self.assertEqual(summary["unknown, left out"], 0)
            trimmed_steps.check(self, trace, run.source, run.options)

    def test_it_has_a_plan_of_one_graph_whose_length_is_updated(self):
        for run in (EAGER, CAPTURED):
            with self.subTest(run=run.name):
                trace = self.record(run)
                path = trace + ".plan.json"
                # With that many steps the cost of a capture has no part in what is planned.
                self.acltape("plan", trace, "-o", path, "--expected-replays", "1000000000")
                with open(path) as file:
                    plan = json.load(file)
                captured = [region for region in plan["regions"] if region["kind"] == "captured"]
                self.assertEqual(len(captured), 1)
                self.assertEqual({update["argument"] for update in plan["updates"]}, {"actualSeqLengthsKvOptional"})
                self.assertEqual(len(plan["updates"]), 2)  # one for each layer
                summary = self.assert_equal_replay(*self.acltape("replay", trace, "--plan", path))
                # Steps are found by what repeats: the first one may begin in the middle of the program's own.
                self.assertIn(summary["steps run captured"], (STEPS - 1, STEPS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
