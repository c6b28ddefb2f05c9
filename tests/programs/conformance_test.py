#!/usr/bin/env python3
"""The programs of conformance.py: each is built by a plain compiler line, runs plainly and under settings
that show mistakes, prints the same when it is recorded, and replays eager and captured. The environment is
that of recorded_test.py.

    conformance_test.py Runtime     a part of the table; conformance_test.py Page: the table of the page
"""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import unittest

import acl_programs
import conformance
import recorded_test
import trimmed_steps
from conformance import PARTS, PASSES, PROGRAMS, REPLAYS
from recorded_test import ACLTAPE

COMPILING = concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count())
COUNTS = collections.Counter()
# Rules of notes on calls that a replay leaves out though values may depend on them.
LEFT_OUT = ("ACL-UNKNOWN", "ACL-LEFT-OUT")


class Conformance(recorded_test.RecordedTest):
    """Has a test for each program of its part."""
    part = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # All programs of the part are compiled beside each other, while the first ones run.
        cls.built = {source: COMPILING.submit(cls.compile, source)
                     for source in dict.fromkeys(program.source for program in cls.part)}

    @classmethod
    def tearDownClass(cls):
        print(cls.__name__ + ": " + ", ".join(f"{name} {count}" for name, count in COUNTS.items()))
        super().tearDownClass()

    @classmethod
    def compile(cls, source):
        binary = os.path.join(cls.folder, source.replace("/", "_") + ".bin")
        line = acl_programs.build_line(source, binary)
        done = subprocess.run(line, capture_output=True, text=True)
        return binary, done.returncode, f"$ {' '.join(line)}\n{done.stdout}{done.stderr}"

    def build(self, source, dlopen=False):
        binary, code, evidence = self.built[source].result()
        self.assertEqual(code, 0, evidence)
        return binary

    def check(self, program):
        binary = self.build(program.source)
        run = acl_programs.Run(conformance.title(program).replace(" ", "_"), program.source, program.options,
                               program.environment)
        shown = {}
        for name, settings in PASSES:
            done = self.run_alone(binary, run._replace(environment={**program.environment, **settings}), timeout=300)
            evidence = f"{name}: {settings} {binary} {' '.join(program.options)}\n{done.stdout}{done.stderr}"
            self.assertEqual(done.returncode, 0, evidence)
            if program.source.startswith("conformance/"):
                self.assertTrue(done.stdout.endswith("ok\n"), evidence)
            shown[name] = done.stdout
            self.assertEqual(shown[name], shown["plain"], evidence)
            COUNTS[name] += 1
        trace = self.record(run)
        COUNTS["recorded"] += 1
        for mode in REPLAYS:
            for process in self.processes(trace):
                with self.subTest(mode=mode, process=process):
                    self.check_replay(program, trace, mode, process)
            COUNTS["not replayed, as documented" if program.reason else mode] += 1
        # The tests of the other programs trim those.
        if program.source.startswith("conformance/"):
            for process in self.processes(trace):
                trimmed_steps.check(self, trace, program.source, program.options, process)
            COUNTS["trimmed"] += 1

    def check_replay(self, program, trace, mode, process):
        command = [ACLTAPE, "replay", trace, "--mode", mode, "--format", "json", *process]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                              env=acl_programs.environment())
        evidence = f"$ {' '.join(command)}\n{done.stdout}{done.stderr}"
        if program.refused:
            self.assertEqual(done.returncode, program.refused,
                             f"it is refused no more, or otherwise; the row says: {program.reason}\n{evidence}")
            return
        self.assertIn(done.returncode, (0, 1, 125) if program.left_out else (0,), evidence)
        report = json.loads(done.stdout)
        left_out = {re.search(r"\bacl\w+", note["message"])[0] for note in report["notes"] if note["rule"] in LEFT_OUT}
        self.assertEqual(left_out, set(program.left_out), evidence)
        if program.left_out:
            return
        summary = {row["quantity"].strip(): row["value"] for row in report["summary"]}
        self.assertGreater(summary["outputs equal"], 0, evidence)
        for quantity in ("outputs different", "substituted by recorded outputs", "unknown, left out"):
            self.assertEqual(summary[quantity], 0, evidence)


def add_parts():
    """A class of tests for each part of the table."""
    for part, groups in PARTS.items():
        own = [program for program in PROGRAMS if program.group in groups]
        members = {"part": own}
        for program in own:
            name = "test_" + "_".join((program.group, os.path.splitext(os.path.basename(program.source))[0],
                                       *program.options)).replace("-", "")
            members[name] = lambda self, program=program: self.check(program)
        globals()[part] = type(part, (Conformance,), members)


add_parts()


class Page(unittest.TestCase):
    maxDiff = None

    def test_there_are_at_least_60_programs(self):
        self.assertGreaterEqual(len({program.source for program in PROGRAMS}), 60)

    def test_every_program_of_the_folder_has_a_row(self):
        folder = os.path.join(acl_programs.FOLDER, "conformance")
        files = {f"conformance/{name}" for name in os.listdir(folder) if not name.endswith(".h")}
        self.assertEqual(files, {program.source for program in PROGRAMS if program.source in files})
        groups = {group for part in PARTS.values() for group in part}
        self.assertEqual({program.group for program in PROGRAMS}, groups)

    def test_a_reason_names_what_the_documents_say_is_not_replayed(self):
        with open(os.path.join(acl_programs.SOURCE, "docs", "interface_functions.md")) as file:
            documents = file.read()
        for program in PROGRAMS:
            self.assertEqual(bool(program.reason), bool(program.left_out or program.refused), program)
            for name in program.left_out:
                self.assertRegex(documents, rf"`{name}`", program.source)

    def test_the_page_has_the_table_of_today(self):
        with open(os.path.join(acl_programs.SOURCE, "docs", "soft_device.md")) as file:
            self.assertEqual(conformance.of_page(file.read()), conformance.table(),
                             "python3 -B tests/programs/conformance.py page docs/soft_device.md writes it anew")


if __name__ == "__main__":
    unittest.main(verbosity=2)
