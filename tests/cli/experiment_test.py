"""acltape experiment: a step partly captured against the eager one, with faults and remedies."""
import json
import os
import shutil

from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, main, run

# Kind and the remedies that cure it.
FAULTS = {
    "wrong_bits": [],
    "low_bits": [],
    "stale_input": ["fresh-inputs", "recapture"],
    "baked_scalar": ["step-arguments", "recapture"],
    "moved_address": ["recapture"],
    "overwritten_output": ["own-memory"],
    "reused_workspace": ["own-workspace"],
}
REMEDIES = ["one-stream", "own-memory", "own-workspace", "fresh-inputs", "step-arguments",
            "recapture"]


class Experiment(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "decoder.db")
        done = run(BINARY, "record", "-o", cls.trace, "--payload", "all", "--", TORCH_PYTHON,
                   os.path.join(WORKLOADS, "decoder.py"))
        assert done.code == 0, done

    def experiment(self, *words, code=0, **options):
        rows = self.json("experiment", self.trace, *words, code=code, **options)
        return {row["quantity"].strip(): row["value"] for row in rows}

    def calls(self, op):
        """Calls of an operator in the second step of the class that is captured."""
        rows = self.json("query", self.trace,
                         "select call_id from call where step = 1 and leaf and "
                         f"op = '{op}' order by call_id")
        return [row["call_id"] for row in rows]

    def test_a_healthy_step_is_equal_however_much_of_it_is_captured(self):
        for captured in ("all", "none", "op:aten::addmm", "step:1/op:aten::bmm,aten::_softmax"):
            rows = self.experiment("--captured", captured, "--run-steps", "2,1,2", "--executions",
                                   "2")
            self.assertEqual(rows["verdict"], "equal bit for bit to the eager step", rows)
            self.assertEqual(rows["executions"], 6)
            self.assertEqual(rows["graphs"] == 0, captured == "none", rows)

    def test_a_standard_says_what_is_too_much(self):
        call = self.calls("aten::addmm")[-1]
        watch = ("--watch", "every", "--executed", str(call))
        self.experiment("--plant", f"low_bits@{call}", *watch, code=1)
        rows = self.experiment("--plant", f"low_bits@{call}", *watch, "--standard", "polygraphy")
        self.assertEqual(rows["verdict"], "as the eager step within polygraphy")
        self.assertEqual(rows["within polygraphy"], 1)
        rows = self.experiment("--plant", f"wrong_bits@{call}", *watch, "--standard", "polygraphy",
                               code=1)
        self.assertRegex(rows["refused because"], r"^\w+ \S+ [<>] \S+ \(float32, ")
        self.assertIn(" --standard polygraphy", rows["reproduce"])
        self.reproduces(rows["reproduce"], code=1)

    def test_a_call_whose_result_nobody_looks_at_has_no_verdict(self):
        call = self.calls("aten::addmm")[0]
        words = ("experiment", self.trace, "--executed", str(call), "--plant", f"wrong_bits@{call}")
        self.assertSentence(self.acltape(*words, code=125), "nothing was compared", "--watch every")
        self.acltape(*words, "--watch", "every", code=1)

    def test_stress_and_golden_inputs_change_nothing(self):
        self.experiment("--stress", "poison,relocate,churn=1M", "--executions", "3")
        self.experiment("--executed", "op:aten::addmm", "--watch", "every")
        rows = self.experiment("--watch", "every")
        self.assertGreater(rows["outputs compared"], 50)

    def test_a_prefix_in_a_graph_whose_other_tasks_are_disabled(self):
        first = self.json("query", self.trace, "select first_call from step where step = 0")
        begin = first[0]["first_call"]
        rows = self.experiment("--disable-tasks", "--captured", f"{begin}-{begin + 70}")
        self.assertEqual(rows["verdict"], "equal bit for bit to the eager step", rows)
        self.assertGreater(rows["calls captured"], 5)
        result = self.acltape("experiment", self.trace, "--disable-tasks", "--captured",
                              f"step:0/{begin + 70}-", code=2)
        self.assertSentence(result, "disables tasks", "captured after one that is not")

    def test_faults_show_in_the_captured_call_and_the_printed_command_shows_them_again(self):
        candidates = self.calls("aten::addmm") + self.calls("aten::add.Tensor")
        for kind, cures in FAULTS.items():
            planted = None
            for call in candidates:
                done = run(BINARY, "experiment", self.trace, "--plant", f"{kind}@{call}",
                           "--format", "json")
                self.assertIn(done.code, (0, 1, 2), done)
                if done.code == 1:
                    planted = f"{kind}@{call}"
                    break
            self.assertIsNotNone(planted, f"no place for {kind}")
            rows = {row["quantity"].strip(): row["value"] for row in json.loads(done.out)}
            self.assertIn("first difference", rows)
            self.assertTrue(rows["reproduce"].startswith(f"acltape experiment {self.trace} "), rows)
            again = self.reproduces(rows["reproduce"])
            self.assertEqual(again.out, done.out)
            self.experiment("--plant", planted, "--captured", "none")
            other = next(remedy for remedy in REMEDIES if remedy not in cures)
            for remedy in [*cures, other]:  # all of them: tests/replayer/planted_fault_test.cpp
                with self.subTest(fault=planted, remedy=remedy):
                    self.experiment("--plant", planted, "--remedy", remedy,
                                    code=0 if remedy in cures else 1)

    def test_a_missing_wait_shows_when_its_stream_runs_ahead(self):
        planted = ["--plant", f"missing_wait@{self.calls('aten::gelu')[0]}"]
        rows = self.experiment(*planted, code=1)
        self.assertIn("ACLTAPE_SOFT_ORDER=2 acltape experiment", rows["reproduce"])
        self.experiment(*planted, "--remedy", "one-stream", code=0)

    def test_under_jitter_a_missing_wait_shows_in_some_executions(self):
        environment = {**os.environ, "ACLTAPE_SOFT_JITTER": "5"}
        words = ["--run-steps", "2,3", "--executions", "20"]
        for call in self.calls("aten::addmm"):
            planted = ["--plant", f"missing_wait@{call}"]
            done = run(BINARY, "experiment", self.trace, *planted, *words, "--format", "json",
                       env=environment)
            if done.code == 1:
                break
        rows = {row["quantity"].strip(): row["value"] for row in json.loads(done.out)}
        self.assertTrue(rows["verdict"].startswith("unstable: different in"), rows)
        self.assertTrue(rows["reproduce"].startswith("ACLTAPE_SOFT_JITTER=5 acltape experiment"))
        self.experiment(*planted, *words, "--remedy", "one-stream", env=environment)

    def test_printed_commands_run_whatever_the_names_of_files_are(self):
        trace = self.path("it's a trace $1.db")
        shutil.copy(self.trace, trace)
        call = self.calls("aten::addmm")[0]
        rows = self.json("experiment", trace, "--plant", f"wrong_bits@{call}", code=1)
        facts = {row["quantity"].strip(): row["value"] for row in rows}
        self.assertIn(facts["first difference"], self.reproduces(facts["reproduce"]).out)
        plan = self.path("the plan's.json")
        self.acltape("plan", trace, "-o", plan)
        faulty = {**os.environ, "ACLTAPE_SOFT_FAULTS": "aclnnAddmm p=0.5 seed=3 flip=29"}
        for words in ([], ["--plan", plan], ["--spread"]):
            report = self.json("replay", trace, *words, code=1, env=faulty)
            facts = {row["quantity"].strip(): row["value"] for row in report["summary"]}
            self.assertIn("different", self.reproduces(facts["reproduce"]).out)

    def test_options_from_a_file(self):
        call = self.calls("aten::addmm")[0]
        path = self.path("options.json")
        with open(path, "w") as file:
            json.dump({"captured": "all", "executed": "all", "capture_match": 0,
                       "run_matches": [1, 2], "faults": [f"wrong_bits@{call}"]}, file)
        rows = self.experiment("--options", path, code=1)
        self.assertEqual(rows["executions different"], 2)
        self.assertIn(f"--options {path}", rows["reproduce"])

    def test_a_file_of_options_that_is_none_gets_one_sentence(self):
        path = self.path("options_that_are_none.json")
        for content, word in ((None, "cannot be read"), ("{", "no JSON object"),
                              ("[]", "no JSON object"), ('{"watch": "all"}', "watch")):
            if content is not None:
                with open(path, "w") as file:
                    file.write(content)
            for command in (["experiment"], ["export", "--to", "cpp", "--calls", "step:1", "-o",
                                             self.path("repro")]):
                result = self.acltape(command[0], self.trace, *command[1:], "--options", path,
                                      code=2)
                self.assertSentence(result, path, word)

    def test_what_is_wrong_is_said_in_one_sentence(self):
        for words, code, said in [
            (["--captured", "9999999"], 2, ["--captured 9999999", "no call"]),
            (["--run-steps", "77"], 2, ["step 77", "alike"]),
            (["--plant", "odd@3"], 2, ["'odd@3' is no fault"]),
            (["--plant", "wrong_bits@9999999"], 2, ["wrong_bits@9999999", "no active call"]),
            (["--remedy", "prayer"], 2, ["--remedy prayer", "one-stream"]),
            (["--stress", "churn=lots"], 2, ["churn=64M"]),
            (["--stress", "heat"], 2, ["--stress heat", "poison"]),
            (["--options", self.path("none.json")], 2, ["none.json"]),
        ]:
            result = self.acltape("experiment", self.trace, *words, code=code)
            self.assertSentence(result, *said)


if __name__ == "__main__":
    main()
