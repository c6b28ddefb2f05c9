#!/usr/bin/env python3
"""The whole path on small forms of the five workloads: record, look, replay, compare."""
import os
import subprocess

from harness import SOURCE, TORCH_PYTHON, WORKLOADS, CommandTest, main, run

SMALL = {
    "resnet18": ["--batches", "4", "--size", "64"],
    "googlenet": ["--batches", "3", "--size", "64"],
    "decoder": ["--tokens", "6", "--layers", "2"],
    "mlp_train": ["--steps", "4"],
    "bert_layer": ["--batches", "2", "--layers", "1"],
}


class Workload:
    """Recorded once with every value; each test looks at that trace."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "t.db")
        cls.program = [TORCH_PYTHON, os.path.join(WORKLOADS, cls.NAME + ".py"), *SMALL[cls.NAME]]
        test = cls("test_output_is_unchanged")
        cls.recorded = test.record(cls.trace, *cls.program, payload="all")

    def summary(self, result):
        return {row["quantity"].strip(): row["value"] for row in result["summary"]}

    def test_output_is_unchanged(self):
        self.assertEqual(self.recorded.out, run(*self.program).out, self.recorded)

    def test_steps_are_found(self):
        steps = self.json("query", self.trace, "--name", "steps")
        self.assertEqual(len(steps), self.STEPS)

    def test_eager_replay_equals_the_recording_bit_for_bit(self):
        rows = self.summary(self.json("replay", self.trace, "--mode", "eager"))
        self.assertEqual(rows["outputs different"], 0)
        self.assertEqual(rows["substituted by recorded outputs"], 0)
        self.assertGreater(rows["outputs equal"], 50)

    def test_captured_replay_equals_the_recording_bit_for_bit(self):
        rows = self.summary(self.json("replay", self.trace, "--mode", "captured"))
        self.assertEqual(rows["outputs different"], 0)
        self.assertEqual(rows["substituted by recorded outputs"], 0)
        self.assertGreater(rows["steps run captured"], 0)


    def test_its_plan_gives_the_bits_of_the_recording_under_jitter(self):
        plan = os.path.join(self.folder, "plan.json")
        self.acltape("plan", self.trace, "-o", plan)
        for seed, outputs in (("1", "leaf"), ("2", "step")):
            report = self.json("replay", self.trace, "--plan", plan, "--repetitions", "4",
                               "--outputs", outputs, env={**os.environ, "ACLTAPE_SOFT_JITTER": seed})
            rows = self.summary(report)
            self.assertEqual(rows["outputs different"], 0)
            self.assertGreater(rows["outputs equal"], 50)
            self.assertIn("captured", {row["kind"] for row in report["regions"]})
        verdicts = self.json("query", self.trace, "SELECT verdict FROM finding WHERE rule = 'PLAN'")
        self.assertEqual([row["verdict"] for row in verdicts], ["reproduced"])


class Resnet18(Workload, CommandTest):
    NAME, STEPS = "resnet18", 4


class Googlenet(Workload, CommandTest):
    NAME, STEPS = "googlenet", 3


class MlpTrain(Workload, CommandTest):
    NAME, STEPS = "mlp_train", 4


class BertLayer(Workload, CommandTest):
    NAME, STEPS = "bert_layer", 2


class Decoder(Workload, CommandTest):
    NAME, STEPS = "decoder", 6

    def test_info_says_what_it_holds(self):
        report = self.json("info", self.trace)
        facts = {row["fact"]: row["value"] for row in report["trace"]}
        self.assertEqual(facts["state"], "complete")
        self.assertEqual(facts["steps"], 6)
        self.assertGreater(facts["leaves"], 100)
        self.assertTrue(facts["replayable"].startswith("yes"))
        meta = {row["key"]: row["value"] for row in report["meta"]}
        self.assertEqual(meta["payload"], "all")

    def test_query_agrees_with_the_stock_shell(self):
        sql = "SELECT op, calls FROM top_ops ORDER BY op LIMIT 5"
        shell = subprocess.run(["sqlite3", "-csv", "-header", self.trace, sql], capture_output=True,
                               text=True, check=True).stdout
        ours = self.acltape("query", self.trace, sql, "--format", "csv").out
        self.assertEqual(ours, shell.replace("\r\n", "\n"))

    def test_every_named_query_runs(self):
        for query in self.json("query", "--list"):
            with self.subTest(query=query["name"]):
                self.acltape("query", self.trace, "--name", query["name"], "--limit", "3")

    def test_named_queries_take_a_selection_and_show_lines_and_units(self):
        step = self.json("query", self.trace, "top_ops", "--calls", "step:1")
        leaves = self.json("query", self.trace, "SELECT count(*) AS n FROM call WHERE leaf AND step = 1")
        self.assertEqual(sum(row["calls"] for row in step), leaves[0]["n"])
        slowest = self.acltape("query", self.trace, "slowest_calls", "--calls", "step:1", "--limit", "1")
        header, _, row = slowest.out.splitlines()
        self.assertRegex(header, r"^call_id +where .*duration ")
        self.assertRegex(row, r"\.py:\d+.* \d[\d.]* [num]?s ")
        in_steps = self.json("query", self.trace, "slowest_calls")
        self.assertTrue(all(row["step"] is not None for row in in_steps))

    def test_limit_bounds_the_rows(self):
        for form, count in (("csv", 3), ("table", 4)):
            out = self.acltape("query", self.trace, "SELECT call_id FROM call", "--limit", "2",
                               "--format", form).out
            self.assertEqual(len(out.splitlines()), count, out)

    def test_graph_shows_one_step_as_torch_fx_would(self):
        rows = self.json("graph", self.trace, "step:2")
        opcodes = [row["opcode"] for row in rows]
        self.assertEqual(set(opcodes), {"placeholder", "get_attr", "call_function", "output"})
        self.assertEqual(opcodes[-1], "output")
        names = [row["name"] for row in rows]
        self.assertEqual(len(names), len(set(names)))
        norm = next(row for row in rows if row["target"] == "aten::native_layer_norm")
        self.assertRegex(norm["args"], r"^add, \[128\], param_\d+, param_\d+, 1e-05$")

    def test_selection_combines_step_and_op(self):
        one = self.json("graph", self.trace, "step:2/op:aten::native_layer_norm")
        all_steps = self.json("graph", self.trace, "op:aten::native_layer_norm")
        count = sum(row["opcode"] == "call_function" for row in one)
        self.assertEqual(count, 5)  # two in each of two blocks and the last
        self.assertEqual(sum(row["opcode"] == "call_function" for row in all_steps), 6 * count)

    def test_compare_times_both_executions(self):
        report = self.json("compare", self.trace, "--repetitions", "3", "--warmup", "1")
        medians = {(row["quantity"], row["execution"]): row["median"] for row in report["times"]}
        for execution in ("recorded", "eager", "captured"):
            self.assertGreater(medians["host_per_step", execution], 0)
        self.assertGreater(medians["device_per_step", "captured"], 0)
        runs = self.json("query", self.trace, "SELECT DISTINCT mode FROM run")
        self.assertLessEqual({"eager", "captured"}, {row["mode"] for row in runs})


class OtherPrograms(CommandTest):
    def test_growing_cache_replays_eagerly_and_says_why_not_captured(self):
        trace = self.path("growing.db")
        self.record(trace, TORCH_PYTHON, os.path.join(WORKLOADS, "decoder.py"), "--growing-cache",
                    "--tokens", "5", "--layers", "1", payload="all")
        self.acltape("replay", trace, "--mode", "eager")
        result = self.acltape("replay", trace, "--mode", "captured", code=1)
        self.assertRegex(result.out, r"aten::\w+")
        self.assertRegex(result.out, r"\[\d+(, ?\d+)*\]")

    def test_user_ranges_become_steps(self):
        trace = self.path("ranges.db")
        script = self.script("""
import torch
from torch.profiler import record_function
x = torch.ones(4)
for i in range(3):
    with record_function(f"step {i}"):
        x = x * 2
""")
        self.record(trace, TORCH_PYTHON, script, options=["--steps-from", "step *"])
        steps = self.json("query", trace, "SELECT step, found_by FROM step")
        self.assertEqual(len(steps), 3)
        self.assertTrue(all(row["found_by"].startswith("range") for row in steps), steps)

    def test_payload_inputs_replays_too(self):
        trace = self.path("inputs.db")
        self.record(trace, TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"), "--steps", "3")
        # The host reads alone are recorded, and they tell of too few leaves for a verdict.
        self.assertIn("not known", self.acltape("replay", trace, "--mode", "eager", code=125).out)
        self.acltape("replay", trace, "--mode", "captured")

    def test_a_changed_payload_is_a_difference(self):
        trace = self.path("changed.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch; torch.arange(4.) * 3", payload="all")
        # The digest recorded for the product becomes that of its input, which has as many bytes.
        self.acltape("replay", trace)
        subprocess.run(["sqlite3", trace, "UPDATE snapshot SET digest = (SELECT digest FROM snapshot "
                        "WHERE bytes = 16 ORDER BY call_id, moment DESC LIMIT 1) "
                        "WHERE call_id = (SELECT max(call_id) FROM snapshot) AND bytes = 16"], check=True)
        result = self.acltape("replay", trace, code=1)
        self.assertIn("aten::mul", result.out)

    def test_quiet_leaves_stderr_to_the_program(self):
        result = self.record(self.path("quiet.db"), TORCH_PYTHON, "-c",
                             "import sys, torch; torch.ones(1); print('mine', file=sys.stderr)",
                             options=["--quiet"])
        self.assertEqual(result.err, "mine\n")

    def test_doctor_finds_everything(self):
        rows = self.json("doctor")
        fine = {row["subject"] for row in rows if row["state"] == "ok"}
        for subject in ("python", "agent", "kit", "soft device", "shared memory"):
            self.assertIn(subject, fine, rows)
        for row in rows:
            if row["subject"] in ("fleets", "fleets on Spark"):
                self.assertEqual(row["state"], "info" if row["remedy"] else "ok", row)
        self.assertLessEqual({"fleets", "fleets on Spark"}, {row["subject"] for row in rows})


class Documentation(CommandTest):
    def test_every_command_and_option_is_in_the_reference(self):
        with open(os.path.join(SOURCE, "docs", "commands.md")) as file:
            text = file.read()
        help_text = self.acltape("--help").out
        commands = [line.split()[0] for line in help_text.split("Subcommands:")[1].split("\n\n")[0]
                    .strip().splitlines()]
        self.assertIn("record", commands)
        common = text.split("## Common to all\n")[1].split("\n## ")[0]
        self.assertIn("`--process PROCESS`", common)
        self.assertIn("`--level aten|acl`", common)
        described = ("--wide", "--color", "--no-pager", "--table", "--max-memory")
        for option in described:
            self.assertIn(f"`{option}", common)
        for command in commands:
            section = text.split(f"## {command}\n")
            self.assertEqual(len(section), 2, f"docs/commands.md has no section '{command}'")
            section = section[1].split("\n## ")[0]
            options = self.acltape(command, "--help").out.split("Options:")[1].split("Examples:")[0]
            for line in options.strip().splitlines():
                option = line.split()[0].split(",")[-1] if line.startswith("  -") else None
                if command != "record" and option == "--level":
                    continue  # described once, for all, as the next two
                if option and option not in ("--help", "--process", *described):
                    self.assertIn(option, section, f"docs/commands.md: {command} {option}")


if __name__ == "__main__":
    main()
