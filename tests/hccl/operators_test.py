#!/usr/bin/env python3
"""Operators that communicate are recorded, and replayed by one rank alone and by all ranks together."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from harness import CommandTest, main  # noqa: E402

PROGRAM = os.environ.get("ACLTAPE_FUSED_RANKS", "build/bin/fused_ranks")
OPERATORS = ("aclnnMatmulAllReduce", "aclnnAllGatherMatmul", "aclnnMatmulReduceScatter")


class RecordedOperators(CommandTest):
    def recorded(self, *words, payload="all"):
        """A trace of the program, which prints what it prints without a recording."""
        trace = self.path("_".join(["trace", *words]) + ".db")
        alone = sorted(self.acltape("run", "--", PROGRAM, *words).out.splitlines())
        done = self.acltape("record", "--soft", "--payload", payload, "--force", "-o", trace, "--", PROGRAM, *words)
        self.assertEqual(sorted(done.out.splitlines())[:2], alone)
        return trace

    def test_a_rank_alone_has_what_the_recording_received(self):
        trace = self.recorded()
        for process in ("1", "2"):
            for words in ([], ["--mode", "captured"], ["--streams", "flat"]):
                with self.subTest(process=process, words=words):
                    done = self.acltape("replay", trace, "--process", process, *words)
                    self.assertIn("equal bit for bit", done.out)

    def test_inputs_alone_hold_what_was_received(self):
        """Nobody can compute it again, so it is kept where results are not."""
        trace = self.recorded(payload="inputs")
        for operator in OPERATORS:
            kept = self.acltape("query", trace, "SELECT count(*) FROM snapshot s JOIN call c USING (call_id) "
                                f"WHERE c.op = '{operator}' AND s.moment = 'after'", "--format", "csv").out
            self.assertEqual(kept.split("\n")[1], "4" if operator == "aclnnAllGatherMatmul" else "2")
        done = self.acltape("replay", trace, "--process", "1", code=125)  # it runs, and nothing can be compared
        self.assertNotIn("left out, and", done.out + done.err)

    def test_all_ranks_run_them(self):
        for words in ([], ["captured"], ["unnamed"]):
            trace = self.recorded(*words)
            for mode in ("eager", "captured"):
                with self.subTest(words=words, mode=mode):
                    done = self.acltape("replay", trace, "--ranks", "all", "--mode", mode)
                    self.assertIn("equal bit for bit on 2 ranks", done.out)
                    self.assertNotIn("left out", done.out)

    def test_in_a_graph_a_rank_alone_leaves_them_out(self):
        trace = self.recorded("captured")
        done = self.acltape("replay", trace, "--process", "1", code=125)
        self.assertRegex(done.out, r"outputs different +0\n")
        for operator in OPERATORS:
            self.assertIn(f"{operator} was left out", done.out + done.err)

    def test_a_group_is_known_by_its_name_where_no_collective_runs_on_it(self):
        trace = self.recorded("unnamed")
        self.assertIn("equal bit for bit", self.acltape("replay", trace, "--process", "1").out)
        self.assertRegex(self.acltape("ranks", trace).out, r"meetings compared between ranks +3\n")

    def test_a_group_that_the_trace_does_not_know_is_refused_with_a_sentence(self):
        """The program chose the name itself, so it asks HCCL for none."""
        trace = self.recorded("given")
        self.assertIn("equal bit for bit", self.acltape("replay", trace, "--process", "1").out)
        done = self.acltape("replay", trace, "--ranks", "all", code=2)
        self.assertIn("leave out --ranks", done.err)


if __name__ == "__main__":
    main()
