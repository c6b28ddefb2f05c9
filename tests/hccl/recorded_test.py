#!/usr/bin/env python3
"""A program of two ranks is recorded with its collectives, and each rank is replayed alone."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from harness import CommandTest, main  # noqa: E402

PROGRAM = os.environ.get("ACLTAPE_TWO_RANKS", "build/bin/two_ranks")
EACH = ["HcclAllGather", "HcclAllGatherV", "HcclAllReduce", "HcclAlltoAll", "HcclAlltoAllV", "HcclBarrier",
        "HcclBroadcast", "HcclReduce", "HcclReduceScatter", "HcclReduceScatterV", "HcclScatter"]


class Recorded(CommandTest):
    def recorded(self, *words):
        """A trace of the program, which prints what it prints without a recording."""
        trace = self.path("_".join(["trace", *words]) + ".db")
        alone = sorted(self.acltape("run", "--", PROGRAM, *words).out.splitlines())
        done = self.acltape("record", "--soft", "--payload", "all", "--force", "-o", trace, "--", PROGRAM, *words)
        self.assertEqual(sorted(done.out.splitlines())[:2], alone)
        return trace

    def test_each_rank_has_its_calls_in_the_dialect_hccl(self):
        trace = self.recorded()
        seen = self.acltape("query", trace, "SELECT o.dialect, o.name, count(*) FROM call c JOIN op o USING (op_id) "
                            "WHERE o.name LIKE 'Hccl%' AND c.thread_id = 1 GROUP BY 1, 2").out
        for name in EACH:
            self.assertRegex(seen, rf"hccl +{name} +2\n")

    def test_a_rank_alone_replays_bit_for_bit_in_each_way(self):
        trace = self.recorded()
        for process in ("1", "2"):
            for words in ([], ["--mode", "captured"], ["--streams", "flat"], ["--repetitions", "2"]):
                with self.subTest(process=process, words=words):
                    done = self.acltape("replay", trace, "--level", "acl", "--process", process, *words)
                    self.assertIn("equal bit for bit", done.out)

    def test_collectives_in_a_graph_are_left_out_and_the_reason_is_told(self):
        trace = self.recorded("captured")
        done = self.acltape("replay", trace, "--level", "acl", "--process", "1", code=1)
        self.assertIn("HcclAllReduce was left out", done.out + done.err)
        self.assertIn("in a graph each execution received something else from the other ranks", done.out + done.err)

    def test_without_values_a_replay_says_what_to_record(self):
        trace = self.path("none.db")
        self.acltape("record", "--soft", "--payload", "none", "--force", "-o", trace, "--", PROGRAM)
        done = self.acltape("replay", trace, "--level", "acl", "--process", "1", code=3)
        self.assertIn("record", done.err)


if __name__ == "__main__":
    main()
