#!/usr/bin/env python3
"""acltape bisect: what it finds, how often it asks, and that what it prints can be run again."""
import json
import os
import shutil
import signal
import subprocess
import time

from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, main, run


class BisectTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "decoder.db")
        cls("run").record(cls.trace, TORCH_PYTHON, os.path.join(WORKLOADS, "decoder.py"),
                          "--tokens", "6", "--layers", "2", payload="all")

    def run(self, result=None):
        self.journal = self.path(f"{self.id().rsplit('.', 1)[-1]}.jsonl")
        return super().run(result)

    def bisect(self, *words, code, **options):
        """The printed tables, the summary as a dictionary."""
        if not any(word in words for word in ("--journal", "--no-journal")):
            words += ("--no-journal",)
        report = self.json("bisect", self.trace, *words, code=code, **options)
        return report, {row["quantity"].strip(): row["value"] for row in report["summary"]}


class Check(BisectTest):
    """The program is executed by a command."""

    def calls(self):
        """The calls that everything altered alters."""
        path = self.path("calls.txt")
        self.bisect("--check", f"cp {{calls}} {path}", code=0)
        with open(path) as file:
            return [int(line) for line in file]

    def failing_with(self, *calls):
        """A command that counts its runs and fails when all these calls are altered."""
        self.runs = self.path(f"{self.id().rsplit('.', 1)[-1]}.runs")
        path = self.path(f"{self.id().rsplit('.', 1)[-1]}.sh")
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\necho run >> {self.runs}\n")
            for call in calls:
                file.write(f'case ",$ACLTAPE_CALLS," in *,{call},*) ;; *) exit 0 ;; esac\n')
            file.write("exit 1\n")
        os.chmod(path, 0o755)
        return path

    def count_runs(self):
        if not os.path.exists(self.runs):
            return 0
        with open(self.runs) as file:
            return len(file.readlines())

    def test_one_call_is_found_within_the_bound(self):
        calls = self.calls()
        bound = (len(calls) - 1).bit_length() + 3
        for place in (0, 7, len(calls) - 1):
            check = self.failing_with(calls[place])
            before = self.count_runs()
            report, summary = self.bisect("--check", check, code=1)
            self.assertEqual([row["element"] for row in report["found"]], [place])
            self.assertTrue(report["found"][0]["what"].startswith(f"call {calls[place]} "))
            self.assertLessEqual(self.count_runs() - before, bound)
            self.assertEqual(summary["experiments"], self.count_runs() - before)
            self.assertEqual(summary["bound for one cause"], bound)
            self.reproduces(summary["reproduce"], code=1)

    def test_a_pair_is_found(self):
        calls = self.calls()
        report, summary = self.bisect("--check", self.failing_with(calls[4], calls[20]), code=1)
        self.assertEqual([row["element"] for row in report["found"]], [4, 20])
        self.reproduces(summary["reproduce"], code=1)

    def test_both_methods_find_the_same(self):
        calls = self.calls()
        report, _ = self.bisect("--check", self.failing_with(calls[4], calls[20]), "--method",
                                "ddmin", code=1)
        self.assertEqual([row["element"] for row in report["found"]], [4, 20])

    def test_only_selected_calls_are_altered(self):
        calls = self.calls()
        report, summary = self.bisect("--check", self.failing_with(calls[20]), "--calls",
                                      f"{calls[10]}-", code=1)
        self.assertEqual([row["element"] for row in report["found"]], [10])
        self.assertEqual(summary["bisected calls"], len(calls) - 10)

    def test_regions(self):
        report, _ = self.bisect("--check", self.failing_with(self.calls()[3]), "--what", "regions",
                                code=1)
        self.assertEqual(len(report["found"]), 1)
        self.assertIn("region", report["found"][0]["what"])

    def test_a_good_program_has_nothing_to_find(self):
        report, summary = self.bisect("--check", "true", code=0)
        self.assertEqual(report["found"], [])
        self.assertEqual(summary["experiments"], 2)

    def test_a_flaky_program_is_named_with_its_rate(self):
        counter = self.path("flaky")
        check = f"echo >> {counter}; test $(($(wc -l < {counter}) % 3)) != 0"
        _, summary = self.bisect("--check", check, "--executions", "3", code=125)
        self.assertTrue(summary["verdict"].startswith("flaky:"), summary)
        self.assertIn("3 of 10 executions", summary["verdict"])

    def test_a_check_that_cannot_judge(self):
        _, summary = self.bisect("--check", "exit 125", code=125)
        self.assertIn("cannot judge", summary["verdict"])

    def test_a_check_that_breaks_ends_the_bisection(self):
        result = self.acltape("bisect", self.trace, "--check", "/no/such/program", "--no-journal",
                              code=4)
        self.assertSentence(result, "exit code 127", "no verdict")

    def test_after_a_kill_no_experiment_is_made_twice(self):
        calls = self.calls()
        check = self.failing_with(calls[4], calls[20])
        _, expected = self.bisect("--check", check, code=1)
        whole = self.count_runs()
        for kill_after in (1, 4, 9):
            os.unlink(self.runs)
            if os.path.exists(self.journal):
                os.unlink(self.journal)
            slow = f"sleep 0.05; {check}"
            process = subprocess.Popen([BINARY, "bisect", self.trace, "--check", slow, "--journal",
                                        self.journal], stdout=subprocess.DEVNULL)
            deadline = time.monotonic() + 60
            while self.count_runs() < kill_after and time.monotonic() < deadline:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.wait()
            with open(self.journal) as file:
                done = len(file.readlines()) - 1
            _, summary = self.bisect("--check", slow, "--journal", self.journal, code=1)
            self.assertEqual(summary["verdict"], expected["verdict"])
            self.assertEqual(summary["from the journal"] if done else 0, done)
            with open(self.journal) as file:
                lines = [json.loads(line) for line in file][1:]
            self.assertEqual(len(lines), whole)
            self.assertEqual(len({line["altered"] for line in lines}), whole)
            # The experiment that was under way at the kill is made again.
            self.assertLessEqual(self.count_runs(), whole + 1)

    def test_a_journal_of_something_else_is_refused(self):
        self.bisect("--check", "true", "--journal", self.journal, code=0)
        result = self.acltape("bisect", self.trace, "--check", "exit 1", "--journal", self.journal,
                              code=2)
        self.assertSentence(result, "belongs to another bisection", "--restart")
        self.bisect("--check", "true", "--calls", "op:aten::add", "--journal", self.journal,
                    "--restart", code=0)

    def test_bisections_with_other_options_have_journals_of_their_own(self):
        trace = self.path("journals.db")
        shutil.copy(self.trace, trace)
        ask = ("bisect", trace, "--no-results", "--check")
        first = self.acltape(*ask, "true")
        self.assertIn(f"the journal is {trace}.bisect.jsonl", first.err)
        second = self.acltape(*ask, "exit 0")
        self.assertIn(f"the journal is {trace}.bisect.2.jsonl", second.err)
        third = self.acltape(*ask, "true", "--calls", "op:aten::add")
        self.assertIn(f"the journal is {trace}.bisect.3.jsonl", third.err)
        for words, name in ((("true",), "bisect.jsonl"), (("exit 0",), "bisect.2.jsonl")):
            again = self.acltape(*ask, *words)
            self.assertRegex(again.err, f"the journal .*{name} goes on after [0-9]+ experiment")
        anew = self.acltape(*ask, "exit 0", "--restart")
        self.assertIn(f"the journal is {trace}.bisect.2.jsonl", anew.err)
        self.assertTrue(os.path.getsize(f"{trace}.bisect.jsonl") > 0)

    def test_a_file_in_the_place_of_the_journal_is_named(self):
        trace = self.path("odd.db")
        shutil.copy(self.trace, trace)
        with open(f"{trace}.bisect.jsonl", "w") as file:
            file.write("no journal\n")
        result = self.acltape("bisect", trace, "--no-results", "--check", "true", code=3)
        self.assertSentence(result, "odd.db.bisect.jsonl", "is no journal", "--journal names another place")

    def test_without_time_the_suspects_are_named(self):
        calls = self.calls()
        check = f"sleep 0.2; {self.failing_with(calls[20])}"
        _, summary = self.bisect("--check", check, "--budget", "700ms", code=1)
        self.assertIn("out of time", summary["verdict"])

    def test_git_mode_only_judges(self):
        self.runs = self.path("git.runs")
        self.bisect("--check", f"echo >> {self.runs}; true", "--git", code=0)
        self.bisect("--check", f"echo >> {self.runs}; test -z $ACLTAPE_CALLS", "--git", code=1)
        self.assertEqual(self.count_runs(), 4)
        self.acltape("bisect", self.path("none.db"), "--check", "true", "--git", code=125)
        self.acltape("bisect", self.trace, "--check", "true", "--git", "--calls", "op:none",
                     "--no-journal", code=128)

    def test_git_bisect_runs_it(self):
        """The commit that broke the program is found with `acltape bisect --git`."""
        folder = self.path("repository")
        os.mkdir(folder)

        def git(*words):
            result = run("git", "-c", "user.name=t", "-c", "user.email=t@t", *words, cwd=folder)
            self.assertEqual(result.code, 0, result)
            return result.out

        git("init", "-q")
        for commit in range(8):
            with open(os.path.join(folder, "program.sh"), "w") as file:
                file.write(f'version={commit}\n')
                file.write('test -z "$ACLTAPE_CALLS" || ' + ("false" if commit >= 5 else "true"))
            git("add", "program.sh")
            git("commit", "-qm", f"commit {commit}")
        git("bisect", "start", "HEAD", "HEAD~7")
        out = git("bisect", "run", BINARY, "bisect", self.trace, "--git", "--no-journal", "--check",
                  "sh program.sh")
        self.assertIn("commit 5", out[out.index("is the first bad commit"):])


class Captured(BisectTest):
    """A captured step against its eager execution."""

    def call_of(self, op):
        """The first call of the op in the first step."""
        rows = self.json("query", self.trace, "select min(call_id) as id from call join op using "
                         f"(op_id) where name = '{op}' and call_id >= (select min(first_call) from "
                         "step)")
        return rows[0]["id"]

    def test_a_healthy_plan_has_nothing_to_find(self):
        report, summary = self.bisect(code=0)
        self.assertEqual(report["found"], [])
        self.assertEqual(summary["experiments"], 2)

    def test_a_missing_wait_is_found_within_the_bound(self):
        call = self.call_of("aten::gelu")
        report, summary = self.bisect("--plant", f"missing_wait@{call}", code=1)
        self.assertIn(f"call {call} aten::gelu", summary["verdict"])
        guess = next(row for row in report["found"] if row["first_guess"] == "yes")
        self.assertEqual(guess["what"], f"call {call} aten::gelu")
        self.assertEqual(summary["class"], "ordering")
        self.assertLessEqual(summary["to the first guess"], summary["bound for one cause"])
        self.assertIn("ACLTAPE_SOFT_ORDER=2", summary["reproduce"])
        self.reproduces(summary["reproduce"], code=1)

    def test_with_jitter_a_missing_wait_shows_in_some_executions(self):
        call = self.call_of("aten::gelu")
        jitter = {**os.environ, "ACLTAPE_SOFT_JITTER": "5"}
        report, summary = self.bisect("--plant", f"missing_wait@{call}", code=1, env=jitter)
        self.assertIn(f"call {call} aten::gelu", summary["verdict"])
        self.assertEqual(summary["class"], "ordering")

    def test_a_wrong_kernel_is_found_and_shown_again(self):
        call = self.call_of("aten::addmm")
        report, summary = self.bisect("--plant", f"wrong_bits@{call}", code=1)
        self.assertIn(f"call {call} aten::addmm differs on its own", summary["verdict"])
        self.assertEqual(summary["class"], "numeric")
        self.assertLessEqual(summary["experiments"], summary["bound for one cause"])
        self.assertEqual([row["outcome"] for row in report["decision"]], ["still different"] * 6)
        self.reproduces(summary["reproduce"], code=1)
        # The fault was planted: it is a witness, and no finding about the trace.
        self.assertEqual(self.json("query", self.trace, "select message from finding where rule = 'BISECT' and "
                                   f"call_id = {call}"), [])
        witnesses = self.json("query", self.trace, "select command from witness where "
                              f"kind = 'bisect' and call_id = {call}")
        self.assertIn(summary["reproduce"], [row["command"] for row in witnesses])

    def test_a_standard_lets_small_errors_pass_and_finds_large_ones(self):
        call = self.call_of("aten::addmm")
        small = ("--plant", f"low_bits@{call}")
        _, summary = self.bisect(*small, code=1)
        self.assertIn(f"call {call} aten::addmm differs on its own", summary["verdict"])
        report, summary = self.bisect(*small, "--standard", "polygraphy", code=0)
        self.assertEqual(report["found"], [])
        self.assertEqual(summary["bad side"], "captured, judged by polygraphy")
        report, summary = self.bisect("--plant", f"wrong_bits@{call}", "--standard", "polygraphy",
                                      code=1)
        self.assertIn(f"call {call} aten::addmm differs on its own", summary["verdict"])
        evidence = json.loads(report["found"][0]["evidence"])
        self.assertEqual(evidence["standard"], "polygraphy")
        self.assertRegex(evidence["reason"], r"^\w+ \S+ [<>] \S+ \(float32, ")
        self.assertIn(" --standard polygraphy ", summary["reproduce"])
        self.reproduces(summary["reproduce"], code=1)
        self.reproduces(summary["reproduce"].replace("wrong_bits", "low_bits"), code=0)

    def test_a_journal_is_of_one_standard(self):
        words = ("--plant", f"wrong_bits@{self.call_of('aten::addmm')}", "--journal", self.journal)
        self.bisect(*words, "--standard", "ascend", code=1)
        _, summary = self.bisect(*words, "--standard", "ascend", code=1)
        self.assertGreater(summary["from the journal"], 0)
        self.assertSentence(self.acltape("bisect", self.trace, *words, code=2), self.journal)
        self.assertSentence(self.acltape("bisect", self.trace, *words, "--standard", "polygraphy",
                                         code=2), self.journal)

    def test_no_standard_is_refused_where_it_says_nothing(self):
        self.assertSentence(self.acltape("bisect", self.trace, "--standard", "strict",
                                         "--no-journal", code=2), "strict", "polygraphy")
        self.assertSentence(self.acltape("bisect", self.trace, "--check", "true", "--standard",
                                         "ascend", "--no-journal", code=2), "a check judges")

    def test_causes_are_handed_on_as_programs(self):
        """Each builds with the printed line, ends with 1, and without the fault with 0."""
        for fault, op in (("wrong_bits", "aten::addmm"), ("stale_input", "aten::addmm"),
                          ("reused_workspace", "aten::bmm"), ("missing_wait", "aten::gelu")):
            with self.subTest(fault=fault):
                folder = self.path(fault)
                report, _ = self.bisect("--plant", f"{fault}@{self.call_of(op)}", "--emit", folder,
                                        "--journal",
                                        self.path(f"{fault}.jsonl"), code=1)
                row, = report["reproducers"]
                self.assertLessEqual(row["trace_s_calls"], 0.05 * len(self.all_leaves()))
                os.remove(os.path.join(folder, "repro"))
                self.assertEqual(run("sh", "-c", row["build"]).code, 0)
                self.assertEqual(run("sh", "-c", row["run"]).code, 1)
                self.assertEqual(run("sh", "-c", row["run"] + " --clean").code, 0)
        refused = self.acltape("bisect", self.trace, "--check", "true", "--emit", folder, code=2)
        self.assertSentence(refused, "--emit")

    def all_leaves(self):
        return self.json("query", self.trace, "select call_id from call where leaf = 1")

    def test_a_workspace_on_a_result_is_aliasing(self):
        call = self.call_of("aten::bmm")
        report, summary = self.bisect("--plant", f"reused_workspace@{call}", code=1)
        guesses = [row["what"] for row in report["found"] if row["first_guess"] == "yes"]
        self.assertTrue(guesses[0].startswith(f"call {call} "), guesses)
        self.assertEqual(summary["class"], "aliasing (workspace)")
        self.assertIn("has its workspace on", summary["evidence"])
        self.reproduces(summary["reproduce"], code=1)

    def test_disabled_tasks_find_the_same(self):
        call = self.call_of("aten::_softmax")
        _, summary = self.bisect("--plant", f"wrong_bits@{call}", "--in-graph", code=1)
        self.assertIn(f"call {call} aten::_softmax differs on its own", summary["verdict"])
        self.assertLessEqual(summary["experiments"], summary["bound for one cause"])

    def test_calls_that_cannot_be_captured_are_refused(self):
        self.assertSentence(self.acltape("bisect", self.trace, "--calls", "1", "--no-journal",
                                         code=2), "--calls picks none", "lie between")
        self.assertSentence(self.acltape("bisect", self.trace, "--bad", "faster", "--no-journal",
                                         code=2), "'faster' is no way of execution")
        self.assertSentence(self.acltape("bisect", self.trace, "--run-steps", "99", "--no-journal",
                                         code=2), "step 99 is none of the bisected class")

    def test_a_flaky_kernel_is_not_put_down_to_the_capture(self):
        faults = {**os.environ, "ACLTAPE_SOFT_FAULTS": "aclnnSoftmax p=0.3 seed=5 flip=5"}
        report, summary = self.bisect("--causes", "1", code=125, env=faults)
        self.assertEqual(report["found"], [])
        self.assertTrue(summary["verdict"].startswith("flaky:"), summary)
        flaky = [row["value"] for row in report["summary"] if row["quantity"].strip() == "flaky"]
        self.assertTrue(flaky and all("_softmax" in row for row in flaky), flaky)

    def test_a_kill_in_the_middle_repeats_nothing(self):
        call = self.call_of("aten::bmm")
        words = ("--plant", f"reused_workspace@{call}", "--journal", self.journal)
        _, expected = self.bisect(*words, code=1)
        with open(self.journal) as file:
            whole = file.readlines()
        for kept in (1, 2, 5, len(whole) - 3):
            with open(self.journal, "w") as file:
                file.writelines(whole[:kept])
                file.write(whole[kept][:20])  # torn
            _, summary = self.bisect(*words, code=1)
            self.assertEqual(summary["verdict"], expected["verdict"])
            self.assertEqual(summary["class"], expected["class"])
            with open(self.journal) as file:
                lines = [json.loads(line) for line in file]
            keys = [(line["experiment"], line["altered"]) for line in lines[1:]]
            self.assertEqual(len(keys), len(whole) - 1)
            self.assertEqual(len(set(keys)), len(keys))

    def test_a_baked_argument_is_a_stale_one(self):
        program = self.script("""
import torch

torch.manual_seed(0)
weight = torch.randn(16, 16, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
for step in range(6):
    loss = (torch.randn(4, 16) @ weight).relu().sum()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    loss.item()
""")
        trace = self.path("schedule.db")
        self.record(trace, TORCH_PYTHON, program, payload="all")
        self.acltape("bisect", trace, "--no-journal", code=0)
        report = self.json("bisect", trace, "--no-journal", "--no-updates", code=1)
        summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
        self.assertIn("aten::add_", summary["verdict"])
        self.assertEqual(summary["class"], "stale argument (host argument)")
        self.assertIn("argument alpha is -0.1 in step 0 and -0.09", summary["evidence"])


if __name__ == "__main__":
    main()
