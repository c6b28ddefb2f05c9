"""Replays recorded PyTorch programs under plans: races between streams, and arguments that vary."""
import json
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(FOLDER), "cli"))
import harness  # noqa: E402


class PlanTest(harness.CommandTest):
    def recorded(self, name, program):
        trace = self.path(name + ".db")
        if not os.path.exists(trace):
            script = self.path(name + ".py")
            with open(script, "w") as file:
                file.write(program)
            self.record(trace, harness.TORCH_PYTHON, script, payload="all",
                        options=["--steps-from", "step *"])
        return trace

    def active(self, trace, step):
        """The calls of a step that a stream executes: its leaves without allocations."""
        return self.json("query", trace, f"SELECT call_id, op FROM call WHERE step = {step} AND leaf "
                         "AND op NOT LIKE 'aten::empty%' ORDER BY call_id")

    def plan(self, trace, step, regions, updates=()):
        """A plan file for a step; regions are lists of (call, stream) with their waits."""
        facts = self.json("query", trace, "SELECT first_call, last_call, (SELECT count(*) FROM call) "
                          f"AS calls FROM step WHERE step = {step}")[0]
        rows = []
        for number, (placements, waits) in enumerate(regions):
            calls = sorted(call for call, _ in placements)
            rows.append({
                "region": number, "kind": "captured", "first_call": calls[0],
                "last_call": calls[-1], "reason": "by hand",
                "placements": [{"call": call, "stream": stream} for call, stream in placements],
                "waits": [{"record_after": after, "wait_before": before, "event": event}
                          for event, (after, before) in enumerate(waits)]})
        plan = {"version": 1, "trace_calls": facts["calls"], "step": step,
                "first_call": facts["first_call"], "last_call": facts["last_call"],
                "capture_mode": "relaxed", "streams": 2, "regions": rows, "copies": [],
                "updates": [{"call": call, "argument": argument} for call, argument in updates]}
        path = self.path(f"plan{self.plans}.json")
        type(self).plans += 1
        with open(path, "w") as file:
            json.dump(plan, file)
        return path

    plans = 0

    def replay(self, trace, *words, code=0, **environment):
        result = self.json("replay", trace, *words, code=code,
                           env={**os.environ, **environment} if environment else None)
        summary = {row["quantity"].strip(): row["value"] for row in result["summary"]}
        return summary, result

    def finding(self, trace, rule):
        return self.json("query", trace, "SELECT call_id, message, verdict FROM finding "
                         f"WHERE rule = '{rule}'")


class Races(PlanTest):
    """mm on the origin; abs, then sub, on a side stream; add of mm and sub on the origin."""
    PROGRAM = """
import torch
from torch.profiler import record_function
torch.manual_seed(0)
for i in range(4):
    a, b, c = torch.randn(24, 24), torch.randn(24, 24), torch.randn(24, 24)
    with record_function(f"step {i}"):
        m = torch.mm(a, b)
        s = torch.abs(c) - m
        out = m + s
"""
    SEEDS = range(1, 5)

    def setUp(self):
        self.trace = self.recorded("race", self.PROGRAM)
        rows = self.active(self.trace, 1)
        self.mm, self.abs, self.sub, self.add = (row["call_id"] for row in rows)
        self.assertEqual([row["op"] for row in rows],
                         ["aten::mm", "aten::abs", "aten::sub.Tensor", "aten::add.Tensor"])

    def plan_with(self, *waits):
        return self.plan(self.trace, 1, [([(self.mm, 0), (self.abs, 1), (self.sub, 1),
                                           (self.add, 0)], waits)])

    def differing(self, plan, seed, *words, code):
        summary, _ = self.replay(self.trace, "--plan", plan, "--repetitions", "10", *words, code=code,
                                 ACLTAPE_SOFT_JITTER=str(seed))
        return summary["outputs different"]

    def test_a_plan_with_one_fork_and_one_join_is_refused_with_both_calls(self):
        result = self.acltape("replay", self.trace, "--plan", self.plan_with((self.sub, self.add)),
                              code=2)
        self.assertIn(f"call {self.sub} aten::sub", result.err)
        self.assertIn(f"call {self.mm} aten::mm", result.err)
        self.assertIn(f"record_after {self.mm} and wait_before {self.sub}", result.err)
        self.assertIn("PLAN-22", result.err)

    def test_the_race_shows_under_jitter_and_the_proposed_wait_removes_it(self):
        racy = self.plan_with((self.sub, self.add))
        different = 0
        for seed in self.SEEDS:
            result = harness.run(harness.BINARY, "replay", self.trace, "--plan", racy,
                                 "--allow-races", "--repetitions", "10", "--format", "json",
                                 env={**os.environ, "ACLTAPE_SOFT_JITTER": str(seed)})
            self.assertIn(result.code, (0, 1), result)
            different += result.code
        self.assertGreater(different, 0, "no seed showed the race")
        findings = self.finding(self.trace, "PLAN-RACE")
        self.assertEqual(len(findings), 1)
        repaired = self.plan_with((self.sub, self.add), (self.mm, self.sub))
        for seed in self.SEEDS:
            self.assertEqual(self.differing(repaired, seed, code=0), 0)
        verdicts = {row["message"]: row["verdict"] for row in self.finding(self.trace, "PLAN")}
        self.assertEqual(verdicts[f"the plan {repaired} gives the bits of the reference"],
                         "reproduced")

    def test_the_shown_race_says_how_to_see_it_again(self):
        racy = self.plan_with((self.sub, self.add))
        for seed in self.SEEDS:
            result = harness.run(harness.BINARY, "replay", self.trace, "--plan", racy,
                                 "--allow-races", "--repetitions", "10",
                                 env={**os.environ, "ACLTAPE_SOFT_JITTER": str(seed)})
            if result.code == 1:
                break
        self.assertEqual(result.code, 1, result)
        self.assertIn(f"ACLTAPE_SOFT_JITTER={seed} acltape replay {self.trace} --plan {racy} "
                      "--allow-races --repetitions 10", result.out)
        self.assertRegex(result.out, r"PLAN-RACE +error .*touch bytes")
        self.assertRegex(result.out, r"(?m)^ *\d+ +\S+:\d+ \(.*\) +\d+ +aten::(sub|add).Tensor")

    def test_runs_name_their_plan_and_a_plan_is_kept_once(self):
        repaired = self.plan_with((self.sub, self.add), (self.mm, self.sub))
        for _ in range(2):
            self.replay(self.trace, "--plan", repaired)
        self.json("compare", self.trace, "--plan", repaired, "--repetitions", "3")
        runs = self.json("query", self.trace, "SELECT plan_id FROM run WHERE plan_id IS NOT NULL "
                         "ORDER BY run_id DESC LIMIT 3")
        self.assertEqual(len({row["plan_id"] for row in runs}), 1)
        waits = self.json("query", self.trace, "SELECT record_call, wait_call FROM sync "
                          f"WHERE plan_id = {runs[0]['plan_id']}")
        self.assertEqual([(row["record_call"], row["wait_call"]) for row in waits],
                         [(self.sub, self.add), (self.mm, self.sub)])

    def test_compare_times_the_plan_next_to_both_others(self):
        repaired = self.plan_with((self.sub, self.add), (self.mm, self.sub))
        report = self.json("compare", self.trace, "--plan", repaired, "--repetitions", "3")
        latencies = {row["execution"]: row["median"] for row in report["times"]
                     if row["quantity"] == "latency_per_step"}
        for execution in ("eager", "captured", "planned"):
            self.assertGreater(latencies[execution], 0)

    def test_races_are_allowed_for_plans_only(self):
        self.assertIn("--plan", self.acltape("replay", self.trace, "--allow-races", code=2).err)


class Updates(PlanTest):
    """Host arguments that vary: a learning rate by schedule, a mask by sequence length."""
    SCHEDULE = """
import torch
from torch.profiler import record_function
torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
for i in range(6):
    x, y = torch.randn(5, 8), torch.randn(5, 4)
    with record_function(f"step {i}"):
        optimizer.zero_grad(set_to_none=False)
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    schedule.step()
"""
    MASK = """
import torch
from torch.profiler import record_function
torch.manual_seed(0)
positions = torch.arange(6)
for i in range(5):
    scores = torch.randn(2, 6)
    with record_function(f"step {i}"):
        weights = scores.masked_fill(positions >= i + 1, float("-inf")).softmax(-1)
"""

    def test_a_learning_rate_is_updated_in_the_graph(self):
        trace = self.recorded("schedule", self.SCHEDULE)
        summary, _ = self.replay(trace, "--mode", "captured")
        self.assertEqual(summary["outputs different"], 0)
        self.assertGreaterEqual(summary["steps run captured"], 4)
        self.assertEqual(summary["updated in the graphs"], 2)  # weight and bias
        self.assertEqual(summary["updates made"], 2 * (summary["steps run captured"] - 1))

    def test_a_baked_learning_rate_differs_and_its_call_is_named(self):
        trace = self.recorded("schedule", self.SCHEDULE)
        summary, report = self.replay(trace, "--mode", "captured", "--updates", "none", code=1)
        self.assertGreater(summary["outputs different"], 0)
        self.assertIn("--updates none", summary["reproduce"])
        first = report["differences"][0]
        self.assertEqual((first["op"], first["output"]), ("aten::add_.Tensor", "self"))
        baked = [row for row in report["notes"] if row["rule"] == "CAPTURE-BAKED"]
        self.assertEqual(len(baked), 2)
        self.assertIn(first["call_id"], [row["call_id"] for row in baked])
        self.assertRegex(baked[0]["message"], r"argument alpha is -0\.\d+ in step \d+ and -0\.\d+")
        self.assertEqual({row["verdict"] for row in self.finding(trace, "CAPTURE-BAKED")},
                         {"reproduced"})

    def test_updates_stay_after_the_previous_execution_under_jitter(self):
        trace = self.recorded("schedule", self.SCHEDULE)
        for seed in ("1", "2", "3"):
            summary, _ = self.replay(trace, "--mode", "captured", "--repetitions", "5",
                                     ACLTAPE_SOFT_JITTER=seed)
            self.assertEqual(summary["outputs different"], 0)

    def test_a_plan_says_which_arguments_are_updated(self):
        trace = self.recorded("mask", self.MASK)
        rows = self.active(trace, 2)
        compare = next(row["call_id"] for row in rows if row["op"] == "aten::ge.Scalar")
        active = [(row["call_id"], 0) for row in rows]
        updated = self.plan(trace, 2, [(active, [])], updates=[(compare, "other")])
        summary, _ = self.replay(trace, "--plan", updated)
        self.assertEqual(summary["outputs different"], 0)
        self.assertEqual(summary["updates made"], 4)
        baked = self.plan(trace, 2, [(active, [])])
        summary, report = self.replay(trace, "--plan", baked, code=1)
        self.assertEqual(report["differences"][0]["op"], "aten::ge.Scalar")

    def test_a_device_without_updates_runs_the_call_eagerly_and_says_so(self):
        trace = self.recorded("mask", self.MASK)
        fault = "aclmdlRICaptureTaskUpdateBegin return=207000"
        summary, report = self.replay(trace, "--mode", "captured", ACLTAPE_SOFT_FAULTS=fault)
        self.assertEqual(summary["outputs different"], 0)
        self.assertEqual(summary["updated in the graphs"], 0)
        reasons = [row["why_not_captured"] for row in report["regions"]
                   if row["kind"] == "eager"]
        self.assertEqual(len(reasons), 1, report["regions"])
        self.assertIn("cannot be updated", reasons[0])
        self.assertIn("207000", reasons[0])


if __name__ == "__main__":
    harness.main()
