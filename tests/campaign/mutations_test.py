#!/usr/bin/env python3
"""The campaign's own rules: one number gives one mutant, and a run that ends wrongly is found."""
import os
import random
import sqlite3
import tempfile
import unittest

import campaign
import mutations


def small_trace(path):
    database = sqlite3.connect(path)
    database.executescript("CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
                           "CREATE TABLE layout(layout_id INTEGER PRIMARY KEY, dtype TEXT, shape TEXT);"
                           "INSERT INTO meta VALUES('base_ns', '7');"
                           "INSERT INTO layout VALUES(1, 'float32', '[2,3]'), (2, 'int64', '[]');")
    database.commit()
    database.close()


def content(path):
    with open(path, "rb") as file:
        return file.read()


class Mutations(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="acltape_mutations_")
        self.addCleanup(self.folder.cleanup)
        self.trace = os.path.join(self.folder.name, "t.db")

    def mutant(self, seed):
        for suffix in ("", "-wal", "-journal"):
            if os.path.exists(self.trace + suffix):
                os.unlink(self.trace + suffix)
        small_trace(self.trace)
        return mutations.mutate(self.trace, random.Random(seed)), content(self.trace)

    def test_one_number_gives_one_mutant(self):
        for seed in range(30):
            self.assertEqual(self.mutant(seed), self.mutant(seed))

    def test_mutants_differ(self):
        self.assertGreater(len({self.mutant(seed)[1] for seed in range(30)}), 20)

    def test_json_is_changed_in_one_place(self):
        document = b'{"a": [1, 2], "b": {"c": "x"}}'
        changed = {mutations.change_json(document, random.Random(seed)) for seed in range(50)}
        self.assertGreater(len(changed), 20)


class Runs(unittest.TestCase):
    def assertPasses(self, code, err=b"", out=b""):
        self.assertEqual(campaign.what_is_wrong(code, out, err, 30), "")

    def assertFound(self, word, code, err=b"", out=b""):
        self.assertIn(word, campaign.what_is_wrong(code, out, err, 30))

    def test_runs_that_pass(self):
        self.assertPasses(0, b"next: acltape lint t.db\n")
        self.assertPasses(1)
        self.assertPasses(3, b"acltape: 't.db' is damaged\n")

    def test_runs_that_are_found(self):
        self.assertFound("signal 11", -11)
        self.assertFound("still running", None)
        self.assertFound("exit code 134", 134)
        self.assertFound("exit code 99", 99, b"==1==ERROR: AddressSanitizer: heap-buffer-overflow")
        self.assertFound("runtime error", 0, b"a.cpp:1:2: runtime error: signed integer overflow")
        self.assertFound("[json.exception", 3, b"acltape: [json.exception.type_error.302] type must be\n")
        self.assertFound("exit code 70", 70, b"acltape: internal error at a.cpp:1, please report: x\n")
        self.assertFound("internal error", 3, b"acltape: internal error at a.cpp:1, please report: x\n")
        self.assertFound("0 sentences", 3)
        self.assertFound("2 sentences", 3, b"acltape: a\nacltape: b\n")
        self.assertFound("control characters", 3, b"acltape: op \x1b[2J\n")

    def test_commands_name_every_command_that_reads_a_trace(self):
        words = {line.split()[0] for line in campaign.COMMANDS.values()}
        self.assertEqual(words, {"info", "query", "report", "graph", "steps", "gears", "captures", "waits", "ranks",
                                 "joint", "plan", "emit", "lint", "replay", "compare", "prove", "merge", "trim", "pack",
                                 "redact", "export", "experiment", "bisect", "diff"})


if __name__ == "__main__":
    unittest.main()
