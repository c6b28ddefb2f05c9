#!/usr/bin/env python3
"""Gates: baselines, allowed changes, formats, exit codes, and that an unchanged program passes."""
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

from harness import SOURCE, TORCH_PYTHON, CommandTest, main

PROGRAM = """
import torch
def run(w):
    for i in range({steps}):
        x = torch.relu(w @ w)
        w = torch.tanh(x)
        {more}
        w.sum().item()
with torch.no_grad():
    run(torch.ones(4, 4))
"""


class Gate(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test = cls("test_an_unchanged_program_passes_with_more_steps")
        cls.traces = {}
        for name, steps, more in (("first", 6, "pass"), ("longer", 9, "pass"),
                                  ("changed", 6, "w = w + torch.rand(4, 4)")):
            script = os.path.join(cls.folder, f"{name}.py")
            with open(script, "w") as file:
                file.write(PROGRAM.format(steps=steps, more=more))
            # One name, so that findings have the same place.
            os.makedirs(os.path.join(cls.folder, name, "src"))
            os.replace(script, os.path.join(cls.folder, name, "src", "program.py"))
            cls.traces[name] = os.path.join(cls.folder, f"{name}.db")
            test.record(cls.traces[name], TORCH_PYTHON, os.path.join(cls.folder, name, "src", "program.py"))
        cls.baseline = os.path.join(cls.folder, "gate.json")
        test.acltape("gate", cls.traces["first"], "--write-baseline", cls.baseline)

    def gate(self, trace, *words, code=0):
        return self.acltape("gate", self.traces[trace], "--baseline", self.baseline, *words, code=code,
                            cwd=os.path.join(self.folder, trace))

    def test_a_baseline_is_sorted_json_with_a_measure_on_a_line(self):
        with open(self.baseline) as file:
            text = file.read()
        document = json.loads(text)
        self.assertEqual(document["acltape_gate_baseline"], 1)
        self.assertEqual(document["basis"], "step")
        self.assertEqual(document["measures"]["step.host_reads"], 1)
        self.assertEqual(list(document["measures"]), sorted(document["measures"]))
        self.assertIn('\n    "step.host_reads": 1,\n', text)

    def test_an_unchanged_program_passes_with_more_steps(self):
        result = self.gate("longer")
        self.assertRegex(result.out, r"\d+ others +equal")
        self.assertIn("0 differ, ", result.out)

    def test_a_change_is_a_row_and_equal_ones_are_one_row(self):
        result = self.gate("changed", code=1)
        self.assertRegex(result.out, r"step.operators +5 +7 +\+2 \(\+40.0%\) +worse")
        self.assertRegex(result.out, r"LINT-25 \| aten::rand \| program.py \(run\) +findings +0 +1 +\+1 +worse")
        self.assertRegex(result.out, r"\d+ others +equal")
        self.assertNotIn("step.host_reads", result.out)
        self.assertIn("step.host_reads", self.gate("changed", "--all", code=1).out)

    def test_allowed_changes_are_told_and_do_not_count(self):
        allow = self.path("allowed.txt")
        with open(allow, "w") as file:
            file.write("# a draw of random numbers\n\nstep.* any\nLINT-* any  # and its findings\n")
        result = self.gate("changed", "--allow", allow)
        self.assertIn("allowed by: step.* any", result.out)
        # A part of the baseline does the same, and stays when the baseline is written again.
        with open(self.baseline) as file:
            document = json.load(file)
        document["allow"] = ["step.* any", "LINT-* any"]
        mine = self.path("mine.json")
        with open(mine, "w") as file:
            json.dump(document, file)
        self.acltape("gate", self.traces["changed"], "--baseline", mine)
        self.acltape("gate", self.traces["first"], "--write-baseline", mine)
        with open(mine) as file:
            self.assertEqual(json.load(file)["allow"], ["step.* any", "LINT-* any"])

    def test_markdown_is_a_table_for_a_pull_request(self):
        lines = self.gate("changed", "--format", "markdown", code=1).out.splitlines()
        self.assertTrue(lines[0].startswith("**acltape gate: changed.** "), lines[0])
        self.assertIn("| measure | baseline | now | change | verdict | note |", lines)
        self.assertTrue(any(line.startswith("| step.operators | 5 | 7 | +2 (+40.0%) | worse |") for line in lines))
        self.assertEqual(self.gate("first", "--format", "markdown").out.count("\n"), 1)

    def test_junit_has_a_case_for_each_measure(self):
        suites = ElementTree.fromstring(self.gate("changed", "--format", "junit", code=1).out)
        failed = [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None]
        self.assertIn("step.operators", failed)
        self.assertEqual(int(suites.get("failures")), len(failed))
        self.assertGreater(int(suites.get("tests")), len(failed))

    def test_sarif_names_files_from_the_source_root(self):
        run, = json.loads(self.gate("changed", "--format", "sarif", code=1).out)["runs"]
        self.assertEqual(run["originalUriBaseIds"]["SRCROOT"]["uri"], f"file://{self.folder}/changed/")
        places = {result["ruleId"]: result["locations"][0]["physicalLocation"] for result in run["results"]}
        self.assertEqual(places["LINT-25"]["artifactLocation"], {"uri": "src/program.py", "uriBaseId": "SRCROOT"})
        # A measure is in no line of the program. It has its line of the baseline.
        with open(self.baseline) as file:
            line = [number for number, text in enumerate(file, 1) if '"step.operators":' in text]
        self.assertEqual(places["step.operators"]["region"]["startLine"], line[0])
        for result in run["results"]:
            location = result["locations"][0]["physicalLocation"]["artifactLocation"]
            self.assertFalse(location["uri"].startswith(("/", "file:")), location)
        run, = json.loads(self.gate("changed", "--format", "sarif", "--source-root", self.folder, code=1).out)["runs"]
        places = {result["ruleId"]: result["locations"][0]["physicalLocation"] for result in run["results"]}
        self.assertEqual(places["LINT-25"]["artifactLocation"]["uri"], "changed/src/program.py")
        self.assertEqual(places["step.operators"]["artifactLocation"]["uri"], "gate.json")

    def test_lint_names_files_from_the_source_root_too(self):
        result = self.acltape("lint", self.traces["changed"], "--no-results", "--format", "sarif", code=1,
                              cwd=os.path.join(self.folder, "changed"))
        run, = json.loads(result.out)["runs"]
        files = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in run["results"]
                 if "physicalLocation" in result.get("locations", [{}])[0]]
        self.assertIn({"uri": "src/program.py", "uriBaseId": "SRCROOT"}, files)
        self.assertIn("SRCROOT", run["originalUriBaseIds"])

    def test_times_are_a_ratio_and_not_known_without_one_in_the_baseline(self):
        self.assertIn("the baseline was written without --times",
                      self.gate("first", "--times", "--repetitions", "6", code=125).out)
        timed = self.path("timed.json")
        self.acltape("gate", self.traces["first"], "--write-baseline", timed, "--times", "--repetitions", "6")
        with open(timed) as file:
            ratio = json.load(file)["times"]["captured_to_eager"]
        self.assertLessEqual(ratio["low"], ratio["median"])
        self.assertLessEqual(ratio["median"], ratio["high"])
        words = ("gate", self.traces["first"], "--baseline", timed, "--times", "--repetitions", "6")
        self.assertIn("not slower", self.acltape(*words, "--max-regression", "100000%").out)

    def test_the_list_of_measures_needs_no_trace(self):
        self.assertRegex(self.acltape("gate", "--list").out, r"step.host_reads +less +operators that bring")


class GateErrors(CommandTest):
    """A file that is no baseline, or allows nothing, is told in one sentence with code 2."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "t.db")
        cls("test_a_bad_baseline").record(cls.trace, TORCH_PYTHON, "-c", PROGRAM.format(steps=4, more="pass"))

    def sentence(self, *words):
        result = self.acltape("gate", self.trace, *words, code=2)
        self.assertEqual(len(result.err.strip().splitlines()), 1, result)
        self.assertTrue(result.err.startswith("acltape: "), result)
        return result.err

    def written(self, name, text):
        path = self.path(name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_a_bad_baseline(self):
        for text, said in (("", "is no baseline of gate"), ("{}", "is no baseline of gate"),
                           ('{"acltape_gate_baseline": 7}', "is of another version"),
                           ('{"acltape_gate_baseline": 1}', "has no text 'basis'"),
                           ('{"acltape_gate_baseline": 1, "basis": "step"}', "has no object 'measures'"),
                           ('{"acltape_gate_baseline": 1, "basis": "step", "measures": {"a": "b"}}',
                            "has no number for 'a'"),
                           ('{"acltape_gate_baseline": 1, "basis": "step", "measures": {}, "findings": {}, '
                            '"allow": ["step.launches"]}', "allows nothing")):
            self.assertIn(said, self.sentence("--baseline", self.written("bad.json", text)))
        self.assertIn("cannot be read", self.sentence("--baseline", self.path("none.json")))

    def test_a_bad_list_of_allowed_changes(self):
        baseline = self.path("good.json")
        self.acltape("gate", self.trace, "--write-baseline", baseline)
        allow = self.written("allow.txt", "# why\nstep.lunches +1\n")
        said = self.sentence("--baseline", baseline, "--allow", allow)
        self.assertIn("allow.txt:2: 'step.lunches' is no measure", said)
        self.assertIn("cannot be read", self.sentence("--baseline", baseline, "--allow", self.path("none.txt")))

    def test_a_file_of_another_kind_is_not_overwritten(self):
        note = self.written("note.txt", "mine")
        self.assertIn("is no baseline of gate", self.sentence("--write-baseline", note))
        self.assertIn("--baseline", self.sentence())


class SteadyGate(CommandTest):
    def test_recordings_of_one_program_under_load_differ_in_nothing_and_changes_are_found(self):
        script = os.path.join(SOURCE, "bench", "gate", "trust.py")
        done = subprocess.run([sys.executable, script, "--python", TORCH_PYTHON, "--recordings", "2", "--load", "1",
                               "--plants", "host_read,copy,finding"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 false; 3 planted changes: 3 found", done.stdout)


if __name__ == "__main__":
    main()
