#!/usr/bin/env python3
"""Equal, holds and nothing found are said of what was compared; of too little of it the verdict is "not known"."""
import os
import re

from harness import TORCH_PYTHON, CommandTest, main

# The device has no kernel of bessel_j0, whose recorded results take its place: nothing tells of y. The host reads an
# element of j, which is compared, and k is compared as a whole.
PARTLY_SEEN = """
import torch
from torch.profiler import record_function
torch.manual_seed(0)
a, b = torch.randn(4, 4), torch.randn(4, 4)
for i in range(4):
    with record_function("step"):
        y = torch.tanh(torch.relu(a @ b) * 2)
        j = torch.special.bessel_j0(y)
        first = (j + 1)[0, 0].item()
        k = torch.abs(a)
"""

WHOLLY_SEEN = """
import torch
from torch.profiler import record_function
torch.manual_seed(0)
a, b = torch.randn(4, 4), torch.randn(4, 4)
for i in range(4):
    with record_function("step"):
        first = torch.relu(a @ b)[0, 0].item()
        k = torch.abs(a)
"""

# The device has no kernel of bessel_j0, so that recorded results take its place.
SUBSTITUTED = """
import torch
from torch.profiler import record_function
x = torch.ones(4, 4)
for i in range(4):
    with record_function("step"):
        y = torch.special.bessel_j0(x)
        z = torch.relu(y)
"""
TOLD = r"leaves that compared outputs tell of +(\d+) of (\d+)"


class NotKnown(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "partly.db")
        test = cls("test_commands_that_execute_a_step_say_how_little_they_saw")
        test.record(cls.trace, TORCH_PYTHON, test.script(PARTLY_SEEN), payload="all", options=["--steps-from", "step"])

    def not_known(self, *words):
        done = self.acltape(*words, code=125)
        self.assertRegex(done.out, r"verdict +not known: .*tells? of \d+ of \d+ leaves that computed")
        self.assertNotRegex(done.out, r"verdict +(equal|holds|nothing found)")
        return done

    def test_commands_that_execute_a_step_say_how_little_they_saw(self):
        for words in (["prove", "--only", "plain", "--no-results"], ["bisect", "--no-journal"], ["experiment"],
                      ["bisect", "--no-journal", "--bad-env", "OMP_NUM_THREADS=1"]):
            with self.subTest(command=words):
                done = self.not_known(words[0], self.trace, *words[1:])
                self.assertRegex(done.out, TOLD)

    def test_an_element_that_the_host_reads_tells_of_what_it_was_made_of(self):
        trace = self.path("wholly.db")
        self.record(trace, TORCH_PYTHON, self.script(WHOLLY_SEEN), payload="all", options=["--steps-from", "step"])
        done = self.acltape("prove", trace, "--only", "plain", "--no-results")
        told = re.search(TOLD, done.out)
        self.assertEqual(told[1], told[2], done)

    def test_a_bisection_between_recordings_that_keep_few_results(self):
        trace = self.path("inputs.db")
        script = self.script(WHOLLY_SEEN)
        self.record(trace, TORCH_PYTHON, script, payload="inputs", options=["--steps-from", "step"])
        self.not_known("bisect", trace, "--against", trace, "--no-journal")
        self.record(trace, TORCH_PYTHON, script, payload="all", options=["--steps-from", "step"])
        done = self.acltape("bisect", trace, "--against", trace, "--no-journal")
        self.assertRegex(done.out, r"verdict +nothing found")
        self.assertRegex(done.out, TOLD)

    def test_a_check_compares_by_itself_and_the_verdict_says_so(self):
        done = self.acltape("bisect", self.trace, "--check", "true", "--no-journal")
        self.assertRegex(done.out, r"calls of the step that the check is asked about +\d+ of \d+")
        self.assertIn("the check is good; what it compares is its own", done.out)

    def test_times_of_a_part_of_a_step_are_no_verdict_on_it(self):
        trace = self.path("substituted.db")
        self.record(trace, TORCH_PYTHON, self.script(SUBSTITUTED), payload="all", options=["--steps-from", "step"])
        words = ("compare", trace, "--repetitions", "3", "--warmup", "1")
        self.assertRegex(self.acltape(*words).out, r"that compute, and are run +1 of 2")
        done = self.acltape(*words, "--max-regression", "1e12%", code=125)
        self.assertIn("the timed executions run 1 of the 2 leaves of a step that compute", done.err)
        self.assertRegex(done.out, r"verdict +not known")


if __name__ == "__main__":
    main()
