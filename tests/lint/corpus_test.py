#!/usr/bin/env python3
"""Each program of the corpus is linted and captured again in each mode: the very rule, the very code,
a clean twin without a finding, and captures that come to a good end once the edits are made.

Traces of failed tests are kept. See corpus.py for the environment.
"""
import os
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import corpus

PAGE = os.path.join(corpus.SOURCE, "docs", "lint_rules.md")
# Edits in words only: the probe cannot make them.
NO_EDIT = {"shared_event", "old_event", "fork_of_default_stream", "default_stream_origin",
           "end_on_wrong_stream", "end_in_wrong_thread", "copy_in_task_group"}
# What a case meets only where its race ended so: the copy fails if the free came first.
BY_CHANCE = {"pool_free_race": {"LINT-51"}}


class CorpusTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="acltape_lint_corpus_")
        cls.failed = False

    @classmethod
    def tearDownClass(cls):
        if cls.failed:
            print("traces kept in", cls.folder)
        else:
            shutil.rmtree(cls.folder, ignore_errors=True)

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            type(self).failed = True


class Programs(CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.programs = corpus.judge_all(cls.folder)
        cls.leaves = corpus.judge_leaves(cls.folder, corpus.torch_python())

    def test_each_failure_is_found_with_its_codes_and_met_on_the_device(self):
        for case, clean, expected, findings, _ in self.programs:
            if clean:
                continue
            with self.subTest(case=case.name):
                codes = {finding["rule"]: tuple(finding[mode] for mode in corpus.MODES)
                         for finding in findings}
                met = {rule: of for rule, of in dict(expected).items()
                       if rule in codes or rule not in BY_CHANCE.get(case.name, ())}
                self.assertEqual(codes, met, findings)
                for finding in findings:
                    if finding["rule"] in ("LINT-50", "LINT-51"):
                        continue  # the recording itself met it
                    refused = finding["global"] and finding["rule"] != "LINT-10"
                    shown = refused or finding["rule"] == "LINT-20"
                    self.assertEqual(finding["verdict"], "reproduced" if shown else "predicted", finding)

    def test_clean_twins_have_no_finding_and_are_captured_in_every_mode(self):
        for case, clean, _, findings, probes in self.programs:
            if not clean:
                continue
            with self.subTest(case=case.name):
                self.assertEqual(findings, [])
                self.assertEqual({probe["mode"] for probe in probes}, set(corpus.MODES))
                for probe in probes:
                    self.assertEqual((probe["first_refused"], probe["end"]), (None, 0), probe)

    def test_what_the_edits_leave_is_captured_in_every_mode(self):
        for case, clean, _, _, probes in self.programs:
            if clean or case.name in NO_EDIT:
                continue
            with self.subTest(case=case.name):
                for probe in probes:
                    if probe["edits"] == "made":
                        self.assertEqual((probe["first_refused"], probe["end"]), (None, 0), probe)

    def test_failures_of_pytorch_programs_are_found_with_their_codes(self):
        for case, clean, expected, findings, _ in self.leaves:
            with self.subTest(case=case.name, clean=clean):
                codes = {finding["rule"]: tuple(finding[mode] for mode in corpus.MODES)
                         for finding in findings}
                self.assertEqual(codes, dict(expected), findings)

    def test_the_page_says_what_the_corpus_measures(self):
        with open(PAGE) as file:
            page = file.read()
        self.assertMultiLineEqual(corpus.generated(page, self.programs + self.leaves), page)

    def test_the_race_of_one_fork_and_one_join_shows_and_the_wait_removes_it(self):
        case = next(case for case in corpus.CASES if case.name == "captured_race")
        trace = corpus.record(self.folder, corpus.build(self.folder), case, clean=False)
        report, _ = corpus.lint(trace, "--prove", "--executions", "40", "--mode", "relaxed")
        race = next(finding for finding in report["findings"] if finding["rule"] == "LINT-20")
        self.assertRegex(race["message"], r"aclnnSub at .* on stream \d+ and aclnnMm at .* on stream \d+")
        as_recorded, edited = report["probes"]
        self.assertEqual((as_recorded["edits"], as_recorded["executions"]), ("none", 40))
        self.assertGreater(as_recorded["differing"], 0)
        self.assertEqual((edited["edits"], edited["executions"], edited["differing"]), ("made", 40, 0))

    def test_the_device_takes_as_many_graphs_as_predicted(self):
        case = next(case for case in corpus.CASES if case.name == "many_graphs")
        trace = corpus.record(self.folder, corpus.build(self.folder), case, clean=False)
        report, _ = corpus.lint(trace, *case.options)
        message = report["findings"][0]["message"]
        out = subprocess.run([corpus.build(self.folder), "many_graphs"], capture_output=True, text=True,
                             env=corpus.acl_programs.environment({"ACLTAPE_SOFT_STREAMS": "40"}))
        made = int(out.stdout.split()[1])
        self.assertIn(f"begins graph {made + 1} of those alive", message)


class Command(CorpusTest):
    def trace(self, name="stream_sync"):
        case = next(case for case in corpus.CASES if case.name == name)
        return corpus.record(self.folder, corpus.build(self.folder), case, clean=False)

    def ask(self, trace, query):
        connection = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def lint(self, *words, code):
        done = subprocess.run([corpus.ACLTAPE, "lint", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_findings_go_to_the_trace_once_with_code_evidence_and_verdict(self):
        trace = self.trace()
        for _ in range(2):
            self.lint(trace, "--prove", code=1)
        rows = self.ask(trace, "SELECT rule, code, verdict, json_extract(evidence, '$.edits[0].hoist') = call_id, "
                               "json_extract(evidence, '$.codes.relaxed') FROM finding WHERE rule LIKE 'LINT%'")
        self.assertEqual(rows, [("LINT-02", 107027, "reproduced", 1, 107027)])

    def test_no_results_leaves_the_trace_as_it_is(self):
        trace = self.trace()
        self.lint(trace, "--no-results", code=1)
        self.assertEqual(self.ask(trace, "SELECT count(*) FROM finding"), [(0,)])

    def test_a_mode_shows_what_it_refuses(self):
        trace = self.trace("synchronous_copy")
        self.assertIn("LINT-03", self.lint(trace, "--mode", "global", code=1).stdout)
        self.assertIn("no findings", self.lint(trace, "--mode", "relaxed", code=0).stdout)

    def test_a_region_is_looked_at_as_it_is_given(self):
        trace = self.trace()
        first, last = self.ask(trace, "SELECT min(call_id), max(call_id) FROM call WHERE op = 'aclnnRelu'")[0]
        self.lint(trace, "--region", f"{first}-{last}", code=1)
        self.lint(trace, "--region", f"{last}-{last}", code=0)

    def test_errors_are_one_sentence(self):
        trace = self.trace()
        for words, code in (((trace, "--region", "7"), 2), ((trace, "--region", "9-7"), 2),
                            ((trace, "--region", "100000-100001"), 2), ((trace, "--soc", "Tiny"), 2),
                            ((trace, "999999"), 2), ((), 2),
                            ((os.path.join(self.folder, "none.db"),), 3),
                            ((trace, "--prove", "--device-lib", "/nowhere"), 4)):
            with self.subTest(words=words):
                done = self.lint(*words, code=code)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
