#!/usr/bin/env python3
"""Files that commands read besides a trace: a pipe, a device or a huge file in their place holds no command up.

The address space of the command is bounded, so that a file that is read into memory is noticed.
"""
import os
import resource
import subprocess
import time

from harness import TORCH_PYTHON, CommandTest, main

PROGRAM = """
import torch
w = torch.ones(8, 8)
for _ in range(4):
    w = torch.tanh(w @ w)
"""
# The command, and the sentence about a file that no command may read.
COMMANDS = (
    ("replay {t} --plan {f}", "the plan '{f}' {why}"),
    ("prove {t} --standard {f}", "{f} is neither a precision standard"),
    ("gate {t} --baseline {f}", "the baseline '{f}' {why}"),
    ("gate {t} --baseline {b} --allow {f}", "the list of allowed changes '{f}' {why}"),
    ("lint {t} --baseline {f}", "the baseline '{f}' {why}"),
    ("experiment {t} --options {f}", "the options file {f} {why}"),
    ("gears --padding-ns 900 --eager-ns 9000 --histogram {f}", "the histogram {f} {why}"),
    ("compare {t} --max-regression 5% --baseline {f}", "'{f}' is neither the number of a run nor a file of times"),
)
SECONDS, MOST_MEMORY = 20, 4 << 30


def bound_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


class NamedFiles(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace, cls.baseline = (os.path.join(cls.folder, name) for name in ("t.db", "baseline.json"))
        test = cls("test_no_command_waits_for_one_or_takes_the_memory")
        test.record(cls.trace, TORCH_PYTHON, "-c", PROGRAM, payload="all")
        test.acltape("gate", cls.trace, "--write-baseline", cls.baseline)

    def test_no_command_waits_for_one_or_takes_the_memory(self):
        pipe, sparse = self.path("pipe"), self.path("sparse")
        os.mkfifo(pipe)
        with open(sparse, "wb") as file:
            file.truncate(100 << 30)
        no_file = "is no plain file"
        for path, why in ((pipe, no_file), ("/dev/zero", no_file), (sparse, "has 107374182400 bytes")):
            for words, says in COMMANDS:
                with self.subTest(words=words, path=path):
                    command = [word.format(t=self.trace, b=self.baseline, f=path) for word in words.split()]
                    begin = time.monotonic()
                    done = subprocess.run([os.environ["ACLTAPE_BINARY"], *command], capture_output=True, text=True,
                                          timeout=SECONDS, preexec_fn=bound_memory)
                    self.assertEqual(done.returncode, 2, f"{command}\n{done.stderr}")
                    self.assertIn(says.format(f=path, why=why), done.stderr)
                    self.assertIn(why, done.stderr)
                    self.assertLess(time.monotonic() - begin, SECONDS / 2)

    def test_a_huge_journal_of_a_bisection_is_no_journal(self):
        journal = self.path("journal.jsonl")
        with open(journal, "wb") as file:
            file.write(b'{"acltape_journal":1}\n')
            file.truncate(100 << 30)
        done = subprocess.run([os.environ["ACLTAPE_BINARY"], "bisect", self.trace, "--journal", journal],
                              capture_output=True, text=True, timeout=SECONDS, preexec_fn=bound_memory)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("is larger than any journal", done.stderr)


if __name__ == "__main__":
    main()
