#!/usr/bin/env python3
"""Prepared questions over fleets of trainings by torch_npu: what is wrong on a rank is found with its line, and a right
training has no finding."""
import json
import os
import sys

import harness  # before the one of tests/cli

sys.path.append(os.path.join(harness.SOURCE, "tests", "fleet"))
import packages  # noqa: E402

packages.enter()
PROGRAM = os.path.join(harness.PROGRAMS, "ranks_faulty.py")
# By what the program does wrong: the question, and what its answer says. Rank 1 is the wrong one.
FAULTS = {"replica": ("parted_replicas", r"aten::_foreach_add_\.List \(argument 0\) is equal on the 2 ranks of its "
                                         r"role up to step \d, and rank 1 has another one from step \d on"),
          "order": ("collective_order", "is HcclBroadcast of 4 on rank 1 and HcclAllReduce of 4 on the 1 others")}


class Fleets(harness.NpuTest):
    def report(self, *words):
        """The answers of all prepared questions by their names."""
        python = {"ACLTAPE_PYTHON": sys.executable}
        name = "_".join(words)
        self.call(harness.BINARY, "record", "--soft", "--per-rank", "--payload", "digest", "--device-times", "-o",
                  f"{name}.db", "--", harness.PYTHON, PROGRAM, *words, code=1 if words == ("order",) else 0,
                  environment={"HCCL_EXEC_TIMEOUT": "20"})
        traces = [f"{name}.rank{rank}.db" for rank in (0, 1)]
        for trace in traces:
            self.call(harness.BINARY, "steps", trace)
        folder = f"of_{name}"
        self.call(harness.BINARY, "fleet", "add", folder, *traces, environment=python)
        said = self.call(harness.BINARY, "fleet", "report", folder, "--format", "json", environment=python).stdout
        answers = {}
        for row in json.loads(said)["answer"]:
            answers.setdefault(row["name"], []).append(row["answer"])
        return answers

    def test_what_is_wrong_on_a_rank_is_found_with_its_line(self):
        for kind, (question, said) in FAULTS.items():
            with self.subTest(kind):
                answers = self.report(kind)
                self.assertRegex(answers[question][0], said)
                self.assertRegex(answers[question][0], r" Its line is \S*/ranks_faulty\.py:\d+\.$")

    def test_a_right_training_has_no_finding(self):
        answers = self.report("replica", "right")
        for question, said in answers.items():
            self.assertRegex(said[0], "^(Not known: this needs that |All ranks |No |Each |What was equal )", question)
        self.assertEqual(answers["parted_replicas"], ["What was equal on all ranks of a role stays equal."])


if __name__ == "__main__":
    harness.main()
