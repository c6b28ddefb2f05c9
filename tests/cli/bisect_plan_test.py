#!/usr/bin/env python3
"""acltape bisect --what streams and --what buffers: liberties of a plan, found and shown again."""
import json
import os
import subprocess

from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, main, run


class Liberties(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test = cls("run")
        cls.trace = os.path.join(cls.folder, "decoder.db")
        test.record(cls.trace, TORCH_PYTHON, os.path.join(WORKLOADS, "decoder.py"), "--tokens", "6",
                    "--layers", "2", payload="all")
        cls.plan = os.path.join(cls.folder, "plan.json")
        test.acltape("plan", cls.trace, "--spread", "-o", cls.plan)

    def bisect(self, *words, code, **options):
        report = self.json("bisect", self.trace, "--no-journal", *words, code=code, **options)
        return report, {row["quantity"].strip(): row["value"] for row in report["summary"]}

    def reproduces(self, command, code):
        folder = os.path.dirname(BINARY)
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}{done.stderr}")

    def call_of(self, op):
        return self.json("query", self.trace, "select min(call_id) as id from call where op = "
                         f"'{op}' and step = (select min(step) from step)")[0]["id"]

    def racy_plan(self):
        """The plan without one wait of a call that reads what the other one writes."""
        with open(self.plan) as file:
            plan = json.load(file)
        region = next(row for row in plan["regions"] if row["kind"] == "captured")
        streams = {row["call"]: row["stream"] for row in region["placements"]}
        self.assertEqual(set(streams.values()), {0, 1})
        for wait in list(region["waits"]):
            rest = [row for row in region["waits"] if row is not wait]
            path = self.path("racy.json")
            with open(path, "w") as file:
                json.dump({**plan, "regions": [{**row, "waits": rest} if row is region else row
                                               for row in plan["regions"]]}, file)
            result = run(BINARY, "experiment", self.trace, "--plan", path, "--allow-races")
            self.assertIn(result.code, (0, 1), result)
            if result.code == 1:
                return path, wait
        self.fail("no wait of the plan is needed")

    def test_a_healthy_plan_has_nothing_to_find(self):
        for what in ("streams", "buffers"):
            report, summary = self.bisect("--plan", self.plan, "--what", what, code=0)
            self.assertEqual(report["found"], [])
            self.assertGreater(summary[f"bisected {what}"], 0)

    def test_a_missing_wait_of_a_plan_is_found_on_its_stream(self):
        plan, wait = self.racy_plan()
        report, summary = self.bisect("--plan", plan, "--allow-races", "--what", "streams", code=1)
        self.assertIn("right on the main streams alone and differs with stream 1 of region 0",
                      summary["verdict"])
        self.assertEqual(summary["class"], "ordering")
        decided = {row["changed"]: row["outcome"] for row in report["decision"]}
        self.assertEqual(decided["one stream"], "no difference")
        evidence = [row["value"] for row in report["summary"]
                    if row["quantity"].strip() == "evidence"]
        self.assertTrue(any(f"\"wait_before\": {wait['wait_before']}" in row for row in evidence),
                        f"{wait} {evidence}")
        for name in ("reproduce", "reproduce narrowed"):
            self.reproduces(summary[name], code=1)
        self.reproduces(summary["reproduce"].split(" --keep-streams ")[0] + " --keep-streams none",
                        code=0)

    def test_memory_used_too_early_is_found_and_shown_again(self):
        call = self.call_of("aten::bmm")
        for fault, cause, words in (
                ("overwritten_output", "aliasing (memory)", "writes bytes"),
                ("reused_workspace", "aliasing (workspace)", "has its workspace on bytes")):
            with self.subTest(fault=fault):
                report, summary = self.bisect("--plant", f"{fault}@{call}", "--what", "buffers",
                                              code=1)
                self.assertEqual(len(report["found"]), 1)
                self.assertIn(f"of call {call} aten::bmm, where", summary["verdict"])
                self.assertLessEqual(summary["experiments"], summary["bound for one cause"])
                self.assertEqual(summary["class"], cause)
                self.assertIn(f"call {call} aten::bmm {words}", summary["evidence"])
                self.reproduces(summary["reproduce"], code=1)
                self.reproduces(summary["reproduce"].split(" --share-memory ")[0] +
                                " --share-memory none", code=0)
                witness, = self.json("query", self.trace, "select options from witness where "
                                     f"call_id = {call} and command = '{summary['reproduce']}'")
                kept = json.loads(witness["options"])["kept_reuses"]
                self.assertEqual(len(kept["buffers"]) + len(kept["workspaces"]), 1)
                options = self.path("options.json")
                with open(options, "w") as file:
                    file.write(witness["options"])
                self.acltape("experiment", self.trace, "--options", options, code=1)

    def test_what_was_found_is_written_as_a_program(self):
        folder = self.path("repro")
        report, _ = self.bisect("--plant", f"overwritten_output@{self.call_of('aten::bmm')}",
                                "--what", "buffers", "--emit", folder, code=1)
        row, = report["reproducers"]
        self.assertEqual((row["exit_code"], row["with_clean"]), (1, 0))

    def test_a_difference_that_stays_without_them_is_a_matter_of_calls(self):
        call = self.call_of("aten::bmm")
        for what, words in (("streams", "concurrency"), ("buffers", "reused memory")):
            _, summary = self.bisect("--plan", self.plan, "--plant", f"wrong_bits@{call}", "--what",
                                     what, code=125)
            self.assertIn(f"so that {words} is not the cause", summary["verdict"])
            self.reproduces(summary["reproduce"], code=1)
            go_on = summary["verdict"].split("go on with: ")[1]
            self.reproduces(go_on + " --no-journal --no-results", code=1)

    def test_a_flaky_kernel_is_not_put_down_to_a_plan(self):
        faults = {**os.environ, "ACLTAPE_SOFT_FAULTS": "aclnnSoftmax p=0.3 seed=5 flip=5"}
        report, summary = self.bisect("--what", "buffers", code=125, env=faults)
        self.assertTrue(summary["verdict"].startswith("flaky:"), summary)
        self.assertTrue(summary["flaky"], summary)
        self.assertIn("_softmax", summary["flaky"])

    def test_a_bisection_goes_on_where_it_was(self):
        journal = self.path("liberties.jsonl")
        words = ("--plant", f"overwritten_output@{self.call_of('aten::bmm')}", "--what", "buffers",
                 "--journal", journal)
        trace = self.json("bisect", self.trace, *words, code=1)
        with open(journal) as file:
            lines = file.readlines()
        with open(journal, "w") as file:
            file.writelines(lines[:4])
        again = self.json("bisect", self.trace, *words, code=1)
        self.assertEqual(again["found"], trace["found"])
        with open(journal) as file:
            self.assertEqual(len(file.readlines()), len(lines))

    def test_what_cannot_be_bisected_so_is_refused_in_a_sentence(self):
        for words, sentence in (
                (("--what", "streams"), "no streams to bisect"),
                (("--what", "buffers", "--check", "true"), "leave out --check"),
                (("--what", "buffers", "--in-graph"), "--in-graph leaves calls out"),
                (("--what", "streams", "--plan", self.plan, "--calls", "op:aten::gelu"),
                 "--calls holds all calls of none of the streams")):
            result = self.acltape("bisect", self.trace, "--no-journal", *words, code=2)
            self.assertSentence(result, sentence)
        for option, sentence in (
                (("--keep-streams", "0:9"), "the plan has no such side stream"),
                (("--keep-streams", str(self.call_of("aten::embedding"))), "on no side stream"),
                (("--share-memory", "none,1"), "nothing of this name")):
            result = self.acltape("experiment", self.trace, "--plan", self.plan, *option, code=2)
            self.assertSentence(result, sentence)

    def test_memory_bounds_what_is_kept_and_changes_no_answer(self):
        call = self.call_of("aten::bmm")
        verdicts = set()
        for size in ("0", "4K", "1M"):
            _, summary = self.bisect("--plant", f"wrong_bits@{call}", "--memory", size, code=1)
            verdicts.add(summary["verdict"])
            self.acltape("experiment", self.trace, "--memory", size)
        self.assertEqual(len(verdicts), 1)
        self.acltape("prove", self.trace, "--only", "plain", "--trials", "1", "--memory", "4K")
        for command in ("bisect", "experiment", "prove"):
            self.assertSentence(self.acltape(command, self.trace, "--memory", "much", code=2),
                                "--memory")


if __name__ == "__main__":
    main()
