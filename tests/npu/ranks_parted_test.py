#!/usr/bin/env python3
"""Two recordings of a training on two ranks: where a fault of one rank parts them."""
import harness

PROGRAM = f"{harness.PROGRAMS}/ranks_parted.py"
# The line of each fault, and the exit code of a bisection: where one rank alone does not show it, 125.
FAULTS = {
    "order": ("total = first + (second + third)", 1),
    "stale": ("shard = kept.repeat(WIDTH // count, 1)", 1),
    "wait": ("early = gathered * 0.5", 125),
    "overflow": ("product = (product.half() * 30000.0 * 30000.0).float()", 125),
}


def lines_of(text):
    with open(PROGRAM) as file:
        return [number for number, line in enumerate(file, 1) if line.strip() == text]


class RanksParted(harness.NpuTest):
    def record(self, fault):
        trace = f"{self.folder}/{fault}.db"
        self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON, PROGRAM,
                  fault.split("-")[0])
        return trace

    def test_the_rank_and_the_line_of_each_fault_are_named(self):
        right, twin = self.record("none"), self.record("none-again")
        for command in (("diff", right, twin, "--ranks", "all"),
                        ("bisect", right, "--against", twin, "--ranks", "all", "--no-journal")):
            self.assertIn("equal on 2 ranks", self.call(harness.BINARY, *command).stdout)
        for fault, (text, code) in FAULTS.items():
            with self.subTest(fault):
                faulty = self.record(fault)
                told = self.call(harness.BINARY, "diff", right, faulty, "--ranks", "all", code=1).stdout
                self.assertRegex(told, r"first divergence +rank 1: call")
                self.assertRegex(told, r"verdict +different, first on rank 1\n")
                if fault != "order":  # there the first divergence is the copy of what is summed in another order
                    self.assertRegex(told, rf"where .*ranks_parted\.py:({'|'.join(map(str, lines_of(text)))}) ")
                told = self.call(harness.BINARY, "bisect", right, "--against", faulty, "--ranks", "all",
                                 "--no-journal", "--no-results", code=code).stdout
                self.assertIn("rank:1 was bisected", told)
                self.assertNotIn("random numbers", told)
                if code == 1:
                    self.assertRegex(told, r"verdict +found: call \d+ aclnn")
                else:
                    self.assertRegex(told, r"verdict +cannot judge: the diff names call \d+ aclnnMuls")

    def test_other_ranks_and_other_options_are_refused(self):
        trace = self.record("none")
        done = self.call(harness.BINARY, "diff", trace, trace, "--ranks", "all", "--process", "rank:1", code=2)
        self.assertIn("leave out --process", done.stderr)
        done = self.call(harness.BINARY, "bisect", trace, "--ranks", "all", code=2)
        self.assertIn("--against", done.stderr)
        done = self.call(harness.BINARY, "diff", trace, trace, "--process", "rank:1")
        self.assertIn("equal: all", done.stdout)
        alone = self.script("""
            import torch
            print(torch.ones(4).npu().sum().item())
        """)
        other = f"{self.folder}/alone.db"
        self.call(harness.BINARY, "record", "--soft", "-o", other, "--", harness.PYTHON, alone)
        done = self.call(harness.BINARY, "diff", trace, other, "--ranks", "all", code=2)
        self.assertIn("has rank 0, 1 with a communicator", done.stderr)
        self.assertIn("has no rank", done.stderr)


if __name__ == "__main__":
    harness.main()
