"""acltape prove: plans that hold, plans and devices that do not, and witnesses that are run again."""
import json
import os

import harness

# On two streams: mm on the origin; abs, then sub, on a side stream; add of both on the origin, with
# a scale that varies from step to step.
PROGRAM = """
import torch
from torch.profiler import record_function
torch.manual_seed(0)
for i in range(5):
    a, b, c = torch.randn(24, 24), torch.randn(24, 24), torch.randn(24, 24)
    with record_function(f"step {i}"):
        m = torch.mm(a, b)
        s = torch.abs(c) - m
        out = torch.add(m, s, alpha=1.5 + i)
"""
KINDS = ["plain", "poison", "relocate", "order", "churn", "capture_at", "alone", "jitter", "ahead"]


class Prove(harness.CommandTest):
    def setUp(self):
        self.trace = self.path(self.id().rsplit(".", 1)[-1] + ".db")
        self.record(self.trace, harness.TORCH_PYTHON, self.script(PROGRAM), payload="all",
                    options=["--steps-from", "step *"])
        rows = self.json("query", self.trace, "SELECT call_id, op FROM call WHERE step = 1 AND leaf "
                         "AND op NOT LIKE 'aten::empty%' ORDER BY call_id")
        self.mm, self.abs, self.sub, self.add = (row["call_id"] for row in rows)
        self.wait = (self.mm, self.sub)

    def plan(self, name, waits, updates=True):
        facts = self.json("query", self.trace, "SELECT first_call, last_call, (SELECT count(*) FROM "
                          "call) AS calls FROM step WHERE step = 1")[0]
        region = {"region": 0, "kind": "captured", "first_call": self.mm, "last_call": self.add,
                  "reason": "by hand",
                  "placements": [{"call": call, "stream": stream} for call, stream in [
                      (self.mm, 0), (self.abs, 1), (self.sub, 1), (self.add, 0)]],
                  "waits": [{"record_after": after, "wait_before": before, "event": event}
                            for event, (after, before) in enumerate(waits)]}
        path = self.path(name)
        with open(path, "w") as file:
            json.dump({"version": 1, "trace_calls": facts["calls"], "step": 1,
                       "first_call": facts["first_call"], "last_call": facts["last_call"],
                       "capture_mode": "relaxed", "streams": 2, "regions": [region], "copies": [],
                       "updates": [{"call": self.add, "argument": "alpha"}] if updates else []},
                      file)
        return path

    def healthy(self, name="plan.json"):
        return self.plan(name, [self.wait, (self.sub, self.add)])

    def prove(self, *words, code=0, **options):
        report = self.json("prove", self.trace, *words, code=code, **options)
        return {row["quantity"]: row["value"] for row in report["summary"]}, report

    def witnesses(self):
        return self.json("prove", self.trace, "--list")

    def test_a_sound_plan_holds_in_trials_of_every_kind(self):
        summary, report = self.prove("--plan", self.healthy(), "--trials", "2")
        self.assertEqual([row["trial"] for row in report["trials"]], KINDS)
        for row in report["trials"]:
            self.assertEqual(row["failures"], 0, row)
            if row["trial"] != "alone":  # one graph
                self.assertEqual(row["trials"], 2, row)
                self.assertGreater(row["outputs_compared"], 0, row)
        self.assertEqual(summary["verdict"], "holds in 16 trials")
        self.assertEqual(self.witnesses(), [])
        claims = self.json("query", self.trace, "SELECT rule, verdict FROM finding WHERE rule LIKE "
                           "'PROVE-%'")
        self.assertEqual({row["verdict"] for row in claims}, {"refuted"})
        self.assertEqual(len(claims), 8)

    def test_a_plain_capture_holds_too(self):
        summary, _ = self.prove("--trials", "1")
        self.assertEqual(summary["plan"], "the longest regions, on one stream")
        self.assertEqual(summary["trials failed"], 0)

    def test_a_plan_without_the_update_leaves_a_witness_that_the_repaired_plan_clears(self):
        broken = self.plan("baked.json", [self.wait, (self.sub, self.add)], updates=False)
        summary, report = self.prove("--plan", broken, "--only", "capture_at,order", code=1)
        failure = report["failures"][0]
        self.assertEqual((failure["op"], failure["verdict"]), ("aten::add.Tensor", "different"))
        self.assertEqual(summary["reproduce"], failure["reproduce"])
        again = self.reproduces(failure["reproduce"])
        self.assertIn(failure["message"].split(";")[0], again.out, again)
        number = failure["witness_id"]
        listed = {row["witness_id"]: row for row in self.witnesses()}
        self.assertEqual(len(listed), len(report["failures"]))
        self.assertEqual(listed[number]["plan"], "baked.json")
        self.assertEqual(listed[number]["reproduce"], failure["reproduce"])
        again = self.acltape("prove", self.trace, "--witness", number, "--plan", self.healthy())
        self.assertIn("equal", again.out)
        # With its own plan it fails as before.
        self.acltape("prove", self.trace, "--witness", number, code=1)
        named = self.json("query", self.trace, "--name", "witnesses")
        self.assertEqual([row["witness_id"] for row in named], sorted(listed))

    def test_a_plan_without_a_wait_is_broken_by_jitter_in_processes_of_their_own(self):
        racy = self.plan("racy.json", [(self.sub, self.add)])
        summary, report = self.prove("--plan", racy, "--allow-races", "--only", "jitter", "--trials",
                                     "4", code=1)
        failure = report["failures"][0]
        self.assertIn(failure["op"], ("aten::sub.Tensor", "aten::add.Tensor"))
        self.reproduces(failure["reproduce"] + " --repetitions 9")
        self.acltape("prove", self.trace, "--witness", failure["witness_id"], "--plan", self.healthy())

    def test_a_plan_without_a_wait_is_broken_by_the_first_trial_with_streams_ahead(self):
        racy = self.plan("racy.json", [(self.sub, self.add)])
        _, report = self.prove("--plan", racy, "--allow-races", "--only", "ahead", "--trials", "1",
                               code=1)
        failure = report["failures"][0]
        self.assertIn("2 streams ahead in turn", failure["message"])
        self.reproduces(failure["reproduce"])
        self.acltape("prove", self.trace, "--witness", failure["witness_id"], "--plan",
                     self.healthy())

    def test_streams_ahead_need_a_plan_with_several(self):
        _, report = self.prove("--only", "ahead,plain", "--trials", "1")
        rows = {row["trial"]: row for row in report["trials"]}
        self.assertEqual(rows["ahead"]["trials"], 0, rows)
        self.assertEqual(rows["ahead"]["note"], "every graph has one stream")

    def test_a_planted_fault_is_caught_and_the_command_shows_it_without_a_trace_to_write_to(self):
        _, report = self.prove("--only", "plain", "--trials", "2", "--plant", f"wrong_bits@{self.mm}",
                               "--no-results", code=1)
        failure = report["failures"][0]
        self.assertEqual(self.witnesses(), [])
        self.reproduces(failure["reproduce"])

    def test_an_error_of_the_device_is_a_failure_with_its_code(self):
        faults = "aclmdlRIExecuteAsync return=507011"
        _, report = self.prove("--only", "plain,poison", "--trials", "1", code=1,
                               env={**os.environ, "ACLTAPE_SOFT_FAULTS": faults})
        self.assertEqual([(row["verdict"], row["code"]) for row in report["failures"]],
                         [("error", 507011)] * 2)
        again = self.reproduces(report["failures"][0]["reproduce"])
        self.assertIn("507011", again.out, again)
        # On a device without the fault it holds, and the witness says so from then on.
        number = report["failures"][0]["witness_id"]
        self.acltape("prove", self.trace, "--witness", number)
        self.assertEqual({row["witness_id"]: row["verdict"] for row in self.witnesses()}[number],
                         "equal")

    def test_a_flaky_kernel_is_flaky_in_eager_runs_and_no_failure_of_the_plan(self):
        for seed in range(1, 4):
            faults = f"aclnnMm p=0.3 seed={seed} flip=22"
            # What repeats in no eager run cannot be judged, and too little is left for a verdict.
            summary, report = self.prove("--only", "plain,order,relocate", code=125,
                                         env={**os.environ, "ACLTAPE_SOFT_FAULTS": faults})
            self.assertTrue(report["flaky"])
            self.assertIn("aten::add.Tensor", {row["op"] for row in report["flaky"]})
            self.assertIn("eager runs disagree", summary["verdict"])

    def test_a_budget_leaves_trials_of_all_kinds_out(self):
        summary, report = self.prove("--trials", "1000", "--only", "plain,churn", "--budget", "1s")
        self.assertIn("cut short by the budget", summary["verdict"])
        for row in report["trials"]:
            self.assertGreater(row["left_out"], 0)
            self.assertEqual(row["trials"] + row["left_out"], 1000)
        plain, churn = report["trials"]
        self.assertLessEqual(abs(plain["trials"] - churn["trials"]), 1)

    def test_what_cannot_be_is_one_sentence(self):
        for words, said in [(["--only", "odd"], "there are plain, poison"),
                            (["--witness", "7"], "has no witness 7"),
                            (["--standard", "odd"], "odd"),
                            (["--plant", "odd@1"], "odd"),
                            (["--budget", "soon"], "soon")]:
            self.assertSentence(self.acltape("prove", self.trace, *words, code=2), said)


if __name__ == "__main__":
    harness.main()
