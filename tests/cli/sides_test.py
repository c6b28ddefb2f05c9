#!/usr/bin/env python3
"""acltape bisect between two devices, two environments, and a recording and a device."""
import json
import os
import signal
import subprocess
import time

from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, main

SOFT = os.path.join(os.path.dirname(os.path.dirname(BINARY)), "sdk", "lib64")
LIBRARIES = ("libascendcl.so", "libnnopbase.so", "libopapi.so", "libacl_op_compiler.so", "kits")


class SidesTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "decoder.db")
        cls("run").record(cls.trace, TORCH_PYTHON, os.path.join(WORKLOADS, "decoder.py"),
                          "--tokens", "6", "--layers", "2", payload="all")

    def bisect(self, *words, code, trace=None, keep=False, **options):
        """The printed tables, the summary as a dictionary."""
        if not keep:
            words += ("--no-results",)
        if not any(word in words for word in ("--journal", "--no-journal")):
            words += ("--no-journal",)
        report = self.json("bisect", trace or self.trace, *words, code=code, **options)
        return report, {row["quantity"].strip(): row["value"] for row in report["summary"]}

    def calls_of(self, op):
        """The calls of an op in the step by which the class is named, the first of it."""
        rows = self.json("query", self.trace, "select call_id from call join op using (op_id) where "
                         f"name = '{op}' and call_id between (select first_call from step order by "
                         "step limit 1) and (select last_call from step order by step limit 1) and "
                         "leaf = 1")
        return [row["call_id"] for row in rows]

    def found(self, report):
        """The calls of each cause."""
        causes = {}
        for row in report["found"]:
            causes.setdefault(row["cause"], []).append(int(row["what"].split()[1]))
        return sorted(causes.values())

    def reproduces(self, command, code):
        """The printed command shows the difference again."""
        folder = os.path.dirname(BINARY)
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}{done.stderr}")

    def library(self, name, opapi=None):
        """A device library of links to the soft device; `opapi` makes its libopapi.so."""
        folder = self.path(name)
        os.mkdir(folder)
        for library in LIBRARIES:
            if library != "libopapi.so" or opapi is None:
                os.symlink(os.path.join(SOFT, library), os.path.join(folder, library))
        if opapi is not None:
            opapi(os.path.join(folder, "libopapi.so"))
        return folder

    def compiled(self, source):
        """Operators of a C source before those of the soft device."""
        def make(path):
            subprocess.run(["cc", "-shared", "-fPIC", "-o", path, "-x", "c", "-", "-x", "none",
                            "-Wl,-soname,libother.so", f"-Wl,-rpath,{SOFT}",
                            "-Wl,--no-as-needed", os.path.join(SOFT, "libopapi.so")],
                           input=source, text=True, check=True)
        return make


class TwoSides(SidesTest):
    def test_a_wrong_kernel_of_the_bad_side_is_found_everywhere(self):
        calls = self.calls_of("aten::_softmax")
        self.assertGreater(len(calls), 1)
        report, summary = self.bisect("--bad-env", "ACLTAPE_SOFT_FAULTS=aclnnSoftmax flip=30",
                                      "--causes", str(len(calls) + 1), code=1, keep=True)
        self.assertEqual(self.found(report), [[call] for call in calls])
        self.assertEqual({row["class"] for row in report["found"]}, {"numeric"})
        self.assertIn("other results from equal inputs", summary["evidence"])
        self.assertIn("aclnnSoftmax flip=30", summary["bad side"])
        for row in report["causes"]:
            self.reproduces(row["reproduce"], code=1)
        findings = self.json("query", self.trace, "select message, evidence from finding where rule "
                             f"= 'BISECT' and call_id = {calls[0]} order by finding_id")
        self.assertIn("executed on the bad side, call", findings[-1]["message"])
        self.assertEqual(json.loads(findings[-1]["evidence"])[0]["class"], "numeric")
        witness = self.json("query", self.trace, "select * from witness where kind = 'bisect' and "
                            f"call_id = {calls[0]} order by witness_id")[-1]
        self.assertIn(witness["command"], [row["reproduce"] for row in report["causes"]])

    def test_one_wrong_kernel_takes_no_more_experiments_than_the_bound(self):
        for op, kernel in (("aten::embedding", "aclnnEmbedding"), ("aten::argmax", "aclnnArgMax")):
            calls = self.calls_of(op)
            if len(calls) != 1:
                continue
            report, summary = self.bisect("--bad-env", f"ACLTAPE_SOFT_FAULTS={kernel} flip=3",
                                          code=1)
            self.assertEqual(self.found(report), [calls])
            self.assertLessEqual(summary["experiments"], summary["bound for one cause"])
            self.reproduces(summary["reproduce"], code=1)
            return
        self.fail("the decoder has neither one embedding nor one argmax")

    def test_a_fault_of_the_good_side_is_found_as_well(self):
        """Nobody knows which side is right: the difference is found either way."""
        calls = self.calls_of("aten::_softmax")
        report, summary = self.bisect("--good-env", "ACLTAPE_SOFT_FAULTS=aclnnSoftmax flip=30",
                                      code=1)
        self.assertIn(self.found(report)[0], [[call] for call in calls])
        self.reproduces(summary["reproduce"], code=1)

    def test_equal_sides_have_nothing_to_find(self):
        for words in (("--bad-env", "SOME_OPTION=1"), ("--bad-device-lib", SOFT),
                      ("--good-device-lib", self.library("equal"), "--bad-device-lib", SOFT,
                       "--good-env", "A=b", "--bad-env", "A=c=d")):
            report, summary = self.bisect(*words, code=0)
            self.assertEqual(report["found"], [])
            self.assertEqual(summary["experiments"], 2)

    def test_a_fault_of_both_sides_is_none_between_them(self):
        self.bisect("--bad-env", "A=b", code=0,
                    env={**os.environ, "ACLTAPE_SOFT_FAULTS": "aclnnSoftmax flip=30"})

    def test_regions(self):
        call = self.calls_of("aten::_softmax")[0]
        report, summary = self.bisect("--bad-env", "ACLTAPE_SOFT_FAULTS=aclnnSoftmax flip=30",
                                      "--what", "regions", code=1)
        first, last = (int(word) for word in report["found"][0]["what"].split(" calls ")[1]
                       .split(" to "))
        self.assertTrue(first <= call <= last)
        self.assertEqual(summary["class"], "numeric")
        self.assertIn("_softmax gives other results from equal inputs", str(report["summary"]))
        self.reproduces(summary["reproduce"], code=1)

    def test_a_flaky_kernel_of_the_bad_side_is_noise(self):
        _, summary = self.bisect("--bad-env",
                                 "ACLTAPE_SOFT_FAULTS=aclnnSoftmax p=0.5 seed=5 flip=30", code=1)
        self.assertIn("aten::_softmax", summary["verdict"])
        self.assertEqual(summary["class"], "noise")

    def test_a_flaky_kernel_of_both_sides_is_named(self):
        report, summary = self.bisect("--bad-env", "A=b", code=125, env={
            **os.environ, "ACLTAPE_SOFT_FAULTS": "aclnnSoftmax p=0.3 seed=5 flip=30"})
        self.assertTrue(summary["verdict"].startswith("flaky:"), summary)
        flaky = [row["value"] for row in report["summary"] if row["quantity"].strip() == "flaky"]
        self.assertTrue(flaky and all("_softmax" in row for row in flaky), flaky)

    def test_a_step_that_is_like_no_other_will_do(self):
        program = self.script("""
import torch
torch.manual_seed(0)
a, b = torch.randn(4, 4), torch.randn(4, 4)
for step in range(2):
    with torch.profiler.record_function("step"):
        c = (a @ b).relu() if step == 0 else (a - b).exp()
        c.sum().item()
""")
        trace = self.path("one.db")
        self.record(trace, TORCH_PYTHON, program, payload="all", options=("--steps-from", "step"))
        _, summary = self.bisect("--bad-env", "ACLTAPE_SOFT_FAULTS=aclnnMm flip=30", trace=trace,
                                 code=1)
        self.assertIn("aten::mm differs on its own", summary["verdict"])
        self.record(trace, TORCH_PYTHON, program, payload="all")
        result = self.acltape("bisect", trace, "--no-journal", "--bad-env", "A=b", code=2)
        self.assertSentence(result, "has no steps", "--steps-from")


class FailingSides(SidesTest):
    def test_an_operator_that_the_bad_library_lacks(self):
        def without_softmax(path):
            with open(os.path.join(SOFT, "libopapi.so"), "rb") as file:
                code = file.read()
            with open(path, "wb") as file:
                file.write(code.replace(b"\0aclnnSoftmax\0", b"\0aclnnSoftmaX\0"))
        calls = self.calls_of("aten::_softmax")
        report, summary = self.bisect("--bad-device-lib", self.library("lacks", without_softmax),
                                      code=1)
        self.assertIn(self.found(report)[0], [[call] for call in calls])
        self.assertEqual(summary["class"], "failure")
        self.assertRegex(summary["evidence"], r"^the bad side failed while it executes calls? .*"
                         r"\(aclnnSoftmax\): the device library has no aclnnSoftmax$")
        self.reproduces(summary["reproduce"], code=1)

    def test_a_kernel_that_kills_the_process(self):
        crash = self.compiled("#include <signal.h>\n"
                              "int aclnnSoftmaxGetWorkspaceSize() { return raise(SIGSEGV); }\n")
        begin = time.monotonic()
        report, summary = self.bisect("--bad-device-lib", self.library("crash", crash), code=1)
        self.assertLess(time.monotonic() - begin, 120)
        self.assertIn(self.found(report)[0], [[call] for call in self.calls_of("aten::_softmax")])
        self.assertEqual(summary["class"], "failure")
        self.assertRegex(summary["evidence"], r"^the bad side died of signal 11 \(Segmentation "
                         r"fault\) while it executes calls? \d+")
        self.reproduces(summary["reproduce"], code=1)

    def test_a_kernel_that_never_returns(self):
        hang = self.compiled("#include <unistd.h>\n"
                             "int aclnnSoftmaxGetWorkspaceSize() { for (;;) pause(); }\n")
        _, summary = self.bisect("--bad-device-lib", self.library("hang", hang), "--time-limit",
                                 "3s", "--git", code=1)
        self.assertTrue(summary["verdict"].startswith("different"), summary)

    def test_a_task_that_fails(self):
        report, summary = self.bisect("--bad-env",
                                      "ACLTAPE_SOFT_FAULTS=aclnnSoftmax fail=507015", code=1)
        self.assertIn(self.found(report)[0], [[call] for call in self.calls_of("aten::_softmax")])
        self.assertEqual(summary["class"], "failure")
        self.assertIn("507015", summary["evidence"])

    def test_a_good_side_that_fails_ends_the_bisection(self):
        result = self.acltape("bisect", self.trace, "--no-journal", "--good-env",
                              "ACLTAPE_SOFT_FAULTS=aclnnSoftmax fail=507015", code=4)
        self.assertSentence(result, "the good side failed while it executes calls", "507015")

    def test_killed_at_any_moment_it_goes_on_with_the_journal(self):
        journal = self.path("killed.jsonl")
        words = ("--bad-env", "ACLTAPE_SOFT_FAULTS=aclnnSoftmax flip=30", "--journal", journal)
        _, expected = self.bisect(*words, code=1)
        with open(journal) as file:
            whole = len(file.readlines())
        os.unlink(journal)
        for lines in (2, 5, whole - 1):
            process = subprocess.Popen([BINARY, "bisect", self.trace, *words],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 100
            while time.monotonic() < deadline and process.poll() is None:
                if os.path.exists(journal):
                    with open(journal) as file:
                        if len(file.readlines()) >= lines:
                            break
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.wait()
        _, summary = self.bisect(*words, code=1)
        self.assertGreater(summary["from the journal"], 0)
        for quantity in ("verdict", "class", "evidence", "reproduce"):
            self.assertEqual(summary[quantity], expected[quantity])
        with open(journal) as file:
            keys = [(line.get("experiment"), line.get("altered"))
                    for line in map(json.loads, file.readlines()[1:])]
        self.assertEqual(len(keys), whole - 1)
        self.assertEqual(len(set(keys)), len(keys))
        other = self.acltape("bisect", self.trace, "--bad-env", "A=b", "--journal", journal, code=2)
        self.assertSentence(other, "belongs to another bisection")

    def test_what_cannot_be_asked_is_said_in_a_sentence(self):
        settings = ("--bad-env", "A=b")
        for words, code, said in (
                (("--bad-device-lib", "/no/such/folder"), 4,
                 ("the bad side failed", "device library missing", "/no/such/folder")),
                (("--good-device-lib", "/no/such/folder"), 4,
                 ("device library missing", "/no/such/folder")),
                (("--bad-env", "NAME"), 2, ("--bad-env 'NAME' is no setting", "NAME=VALUE")),
                (("--good-env", "=value"), 2, ("--good-env '=value' is no setting",)),
                (("--good-env", "9A=1"), 2, ("--good-env '9A=1' is no setting",)),
                ((*settings, "--plan", "p.json"), 2, ("--plan cannot be combined",)),
                ((*settings, "--check", "true"), 2, ("--check cannot be combined",)),
                ((*settings, "--emit", self.path("out")), 2, ("--emit cannot be combined",)),
                ((*settings, "--plant", "wrong_bits@100"), 2, ("--plant cannot be combined",)),
                ((*settings, "--in-graph"), 2, ("--in-graph cannot be combined",)),
                ((*settings, "--what", "updates"), 2, ("--what updates cannot be combined",)),
                ((*settings, "--bad", "captured"), 2, ("executed eagerly", "leave --bad out")),
                ((*settings, "--good", "plan:p.json"), 2, ("--good is eager or recorded",)),
                ((*settings, "--calls", "1"), 2, ("--calls picks none", "lie between")),
                ((*settings, "--run-steps", "99"), 2, ("step 99 is none of the bisected class",)),
                (("--good", "recorded", "--good-env", "A=b"), 2, ("--good recorded executes",)),
                (("--good", "recorded", "--bad", "captured"), 2, ("--good recorded", "eagerly")),
                (("--bad", "recorded"), 2, ("leaves nothing to bisect",))):
            with self.subTest(words=words):
                result = self.acltape("bisect", self.trace, "--no-journal", *words, code=code)
                self.assertSentence(result, *said)

    def test_the_server_is_no_command_for_people(self):
        self.assertNotIn("serve-calls", self.acltape("--help").out)
        result = self.acltape("serve-calls", "--socket", "0", code=4, stdin=subprocess.DEVNULL)
        self.assertSentence(result, "cannot be read from")


class Recorded(SidesTest):
    def test_the_soft_device_gives_what_was_recorded(self):
        report, summary = self.bisect("--good", "recorded", code=0)
        self.assertEqual(report["found"], [])
        self.assertEqual(summary["good side"], "recorded")

    def test_a_kernel_that_does_not_is_found_with_recorded_inputs(self):
        calls = self.calls_of("aten::_softmax")
        faults = "aclnnSoftmax flip=30"
        report, summary = self.bisect("--good", "recorded", "--causes", str(len(calls) + 1), code=1,
                                      env={**os.environ, "ACLTAPE_SOFT_FAULTS": faults})
        self.assertEqual(self.found(report), [[call] for call in calls])
        self.assertEqual(summary["class"], "numeric")
        self.assertIn("_softmax gives other results from recorded inputs", summary["evidence"])
        self.assertIn(faults, summary["reproduce"])
        for row in report["causes"]:
            self.reproduces(row["reproduce"], code=1)

    def test_on_a_device_with_an_environment_of_its_own(self):
        calls = self.calls_of("aten::_softmax")
        report, summary = self.bisect("--good", "recorded", "--bad-env",
                                      "ACLTAPE_SOFT_FAULTS=aclnnSoftmax flip=30", code=1)
        self.assertIn(self.found(report)[0], [[call] for call in calls])
        self.assertEqual(summary["class"], "numeric")
        self.reproduces(summary["reproduce"], code=1)
        self.bisect("--good", "recorded", "--bad-device-lib", SOFT, code=0)

    def test_a_failing_kernel(self):
        _, summary = self.bisect("--good", "recorded", "--bad-env",
                                 "ACLTAPE_SOFT_FAULTS=aclnnSoftmax fail=507015", code=1)
        self.assertIn("aten::_softmax", summary["verdict"])
        self.assertEqual(summary["class"], "failure")

    def test_without_recorded_results_there_is_no_reference(self):
        trace = self.path("inputs.db")
        self.record(trace, TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"), payload="inputs")
        result = self.acltape("bisect", trace, "--no-journal", "--good", "recorded", code=3)
        self.assertSentence(result, "does not hold", "--payload all")


if __name__ == "__main__":
    main()
