#!/usr/bin/env python3
"""Findings of lint for people and for other tools: groups, baselines, SARIF, JUnit, exit codes."""
import json
import os
import xml.etree.ElementTree as ElementTree

from harness import SOURCE, TORCH_PYTHON, CommandTest, main

# A scalar that varies (error), a host read and random numbers (notices), in each step.
PROGRAM = """
import torch
with torch.no_grad():
    w = torch.ones(4, 4)
    for i in range(6):
        x = torch.rand(4, 4)
        y = torch.relu(w @ x * (i + 1.5))
        if y.sum().item() < 0:
            break
        w = torch.tanh(y @ x)
"""
# The same with one more draw of random numbers in each step.
CHANGED = PROGRAM.replace("w = torch.tanh(y @ x)", "w = torch.tanh(y @ torch.rand(4, 4))")


class Lint(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test = cls("test_findings_are_grouped_errors_first")
        cls.traces = []
        for name, program in (("first", PROGRAM), ("again", "import os\n" + PROGRAM),
                              ("changed", CHANGED)):
            cls.traces.append(os.path.join(cls.folder, f"{name}.db"))
            test.record(cls.traces[-1], TORCH_PYTHON, "-c", program)
        cls.trace = cls.traces[0]

    def findings(self, *words, code=1):
        return self.json("lint", *words, "--no-results", code=code)["findings"]

    def sarif(self, trace, *words, code=1):
        result = self.acltape("lint", trace, "--no-results", "--format", "sarif", *words, code=code,
                              cwd=self.folder)
        self.assertEqual(result.err, "")
        return json.loads(result.out)

    def baseline(self, trace=None):
        path = self.path(f"{self.id().rsplit('.', 1)[-1]}.json")
        self.acltape("lint", trace or self.trace, "--no-results", "--write-baseline", path)
        return path

    def test_findings_are_grouped_errors_first(self):
        each = self.findings(self.trace)
        errors = [row for row in each if row["severity"] == "error"]
        self.assertTrue(errors)
        self.assertLess(len(errors), len(each))
        result = self.acltape("lint", self.trace, "--no-results", code=1)
        table = result.out.split("\nfindings\n")[1].split("\n\n")[0].splitlines()[2:]
        rules = [line.split()[0] for line in table]
        severities = [line.split()[1] for line in table]
        self.assertEqual(severities, sorted(severities), result)  # "error" is before "notice"
        self.assertEqual(set(rules), {row["rule"] for row in each})
        self.assertIn(f"{len(errors)} error", result.out)
        self.assertIn(f"in {len(set(rules))} rules", result.out)

    def test_ungrouped_is_a_row_for_each(self):
        each = self.findings(self.trace)
        result = self.acltape("lint", self.trace, "--no-results", "--ungrouped", code=1)
        table = result.out.split("\nfindings\n")[1].split("\n\n")[0].splitlines()[2:]
        self.assertEqual([line.split()[0] for line in table], [row["rule"] for row in each])

    def test_the_exit_code_follows_fail_on(self):
        errors = any(row["severity"] == "error" for row in self.findings(self.trace))
        self.assertTrue(errors)
        for level, code in (("error", 1), ("warning", 1), ("note", 1), ("never", 0)):
            self.acltape("lint", self.trace, "--no-results", "--fail-on", level, code=code)
        # With the errors known, notices are left.
        path = self.baseline()
        with open(path) as file:
            document = json.load(file)
        document["findings"] = [row for row in document["findings"] if row["severity"] == "error"]
        with open(path, "w") as file:
            json.dump(document, file)
        for level, code in (("error", 0), ("warning", 1), ("note", 1), ("never", 0)):
            self.acltape("lint", self.trace, "--no-results", "--baseline", path, "--fail-on", level,
                         code=code)

    def test_another_recording_has_the_same_identities(self):
        identities = [{result["partialFingerprints"]["acltapeFinding/v1"]
                       for result in self.sarif(trace)["runs"][0]["results"]}
                      for trace in self.traces[:2]]
        self.assertEqual(*identities)
        path = self.baseline()
        result = self.acltape("lint", self.traces[1], "--no-results", "--baseline", path)
        self.assertRegex(result.out, r"\nlooked at: [0-9]+ of [0-9]+ leaves of PyTorch, those in regions\nno findings")
        self.assertRegex(result.out, r"no findings in \d+ regions?; [0-9]+ findings of the baseline are not counted\n$")
        self.assertIn(f"next: acltape lint {self.trace} --baseline {path}",
                      self.acltape("lint", self.trace, "--no-results", "--write-baseline", path).err)

    def test_a_table_says_how_many_regions_it_lists(self):
        trace = self.path("long.db")
        self.record(trace, TORCH_PYTHON, "-c", PROGRAM.replace("range(6)", "range(30)"))
        regions = len(self.json("lint", trace, "--no-results", code=1)["regions"])
        self.assertGreater(regions, 10)
        result = self.acltape("lint", trace, "--no-results", code=1)
        self.assertIn(f" in {regions} regions (the first 10 are listed)", result.out)
        table = result.out.split("\nregions\n")[1].split("\n\n")[0].splitlines()[2:]
        self.assertEqual(len(table), 10)

    def test_a_new_finding_is_one_although_its_like_is_known(self):
        path = self.baseline()
        new = self.findings(self.traces[2], "--baseline", path)
        self.assertEqual([row["rule"] for row in new if "rand" in row["message"]], ["LINT-25"])

    def test_equal_findings_of_one_step_have_numbers_of_their_own(self):
        identities = [result["partialFingerprints"]["acltapeFinding/v1"]
                      for result in self.sarif(self.traces[2])["runs"][0]["results"]]
        draws = [one for one in identities if one.startswith("LINT-25 | aten::rand ")]
        self.assertEqual([one.split(" | ")[-1] for one in draws], ["1", "2"])

    def test_files_that_are_no_baseline_are_refused(self):
        path = self.path("wrong.json")
        for text, words in (("", "no baseline"), ("[1]", "no baseline"), ("{}", "no baseline"),
                            ('{"acltape_lint_baseline": 9, "findings": []}', "another version"),
                            ('{"acltape_lint_baseline": 1}', "no list of findings"),
                            ('{"acltape_lint_baseline": 1, "findings": [{}]}', "without an identity"),
                            ('{"acltape_lint_baseline": 1, "findings": [[1]]}', "an identity")):
            with open(path, "w") as file:
                file.write(text)
            result = self.acltape("lint", self.trace, "--baseline", path, code=2)
            self.assertSentence(result, words, "--write-baseline")
        missing = self.acltape("lint", self.trace, "--baseline", self.path("none.json"), code=2)
        self.assertSentence(missing, "cannot be read")
        unwritten = self.acltape("lint", self.trace, "--no-results", "--write-baseline",
                                 "/no/such/folder/b.json", code=4)
        self.assertSentence(unwritten, "cannot be written")

    def test_sarif_has_what_the_standard_requires(self):
        path = self.baseline()
        for words, code in (((), 1), (("--baseline", path), 0)):
            document = self.sarif(self.trace, *words, code=code)
            self.assertEqual(document["version"], "2.1.0")
            self.assertIn("sarif-2.1.0", document["$schema"])
            run, = document["runs"]
            driver = run["tool"]["driver"]
            self.assertEqual(driver["name"], "acltape")
            rules = driver["rules"]
            self.assertEqual(len({rule["id"] for rule in rules}), len(rules))
            for rule in rules:
                self.assertTrue(rule["shortDescription"]["text"])
                self.assertIn(rule["defaultConfiguration"]["level"], ("error", "warning", "note"))
            self.assertTrue(run["results"])
            for result in run["results"]:
                self.assertEqual(rules[result["ruleIndex"]]["id"], result["ruleId"])
                self.assertIn(result["level"], ("error", "warning", "note"))
                self.assertTrue(result["message"]["text"])
                self.assertGreaterEqual(result["occurrenceCount"], 1)
                for location in result.get("locations", []):
                    for logical in location.get("logicalLocations", []):
                        self.assertTrue(logical.keys() & {"name", "fullyQualifiedName"})
                states = {"unchanged"} if words else {None}
                self.assertIn(result.get("baselineState"), states)
            self.assertEqual({result["level"] for result in run["results"]}, {"error", "warning"})

    def test_a_place_is_a_file_below_this_folder_and_a_line(self):
        trace = self.path("lines.db")
        script = os.path.join(SOURCE, "tests", "programs", "python_lines.py")
        self.acltape("record", "--quiet", "--soft", "-o", trace, "--", TORCH_PYTHON, "-B", script)
        result, = self.sarif(trace, "--source-root", SOURCE)["runs"][0]["results"]
        place = result["locations"][0]["physicalLocation"]
        self.assertEqual(place["artifactLocation"],
                         {"uri": "tests/programs/python_lines.py", "uriBaseId": "SRCROOT"})
        with open(script) as file:
            line = file.read().splitlines()[place["region"]["startLine"] - 1]
        self.assertIn("GetWorkspaceSize", line)
        self.assertIn("python_lines.py (prepare)",
                      result["partialFingerprints"]["acltapeFinding/v1"])
        below = self.acltape("lint", trace, "--no-results", "--format", "sarif", code=1, cwd=SOURCE)
        self.assertIn('"uri": "tests/programs/python_lines.py"', below.out)
        grouped = self.acltape("lint", trace, "--no-results", code=1)
        self.assertIn(f"python_lines.py:{place['region']['startLine']} (prepare)", grouped.out)

    def test_junit_counts_what_it_holds(self):
        path = self.baseline()
        each = self.findings(self.trace)
        errors = sum(row["severity"] == "error" for row in each)
        for words, code, failures, skipped in (
                ((), 1, len(each), 0), (("--fail-on", "error"), 1, errors, 0),
                (("--fail-on", "never"), 0, 0, 0), (("--baseline", path), 0, 0, len(each))):
            result = self.acltape("lint", self.trace, "--no-results", "--format", "junit", *words,
                                  code=code)
            suites = ElementTree.fromstring(result.out.encode())
            suite, = suites
            cases = list(suite)
            self.assertEqual(suite.attrib["tests"], str(len(cases)), result)
            self.assertEqual(len(suites.findall(".//failure")), failures, result)
            self.assertEqual(len(suites.findall(".//skipped")), skipped, result)
            self.assertEqual((suite.attrib["failures"], suite.attrib["skipped"]),
                             (str(failures), str(skipped)))
            self.assertGreater(len(cases), len(each))  # rules without a finding pass

    def test_csv_stays_a_row_for_each_finding(self):
        lines = self.acltape("lint", self.trace, "--no-results", "--format", "csv", code=1).out
        rows = [line for line in lines.splitlines() if line.startswith("LINT-")]
        self.assertEqual(len(rows), len(self.findings(self.trace)))


if __name__ == "__main__":
    main()
