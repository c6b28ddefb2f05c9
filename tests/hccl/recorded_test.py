#!/usr/bin/env python3
"""A program of two ranks is recorded with its collectives, and each rank is replayed alone."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from harness import CommandTest, main  # noqa: E402

PROGRAM = os.environ.get("ACLTAPE_TWO_RANKS", "build/bin/two_ranks")
EACH = ["HcclAllGather", "HcclAllGatherV", "HcclAllReduce", "HcclAlltoAll", "HcclAlltoAllV",
        "HcclAlltoAllVC", "HcclBarrier", "HcclBatchSendRecv", "HcclBroadcast", "HcclReduce", "HcclReduceScatter",
        "HcclReduceScatterV", "HcclScatter"]


class Recorded(CommandTest):
    def recorded(self, *words):
        """A trace of the program, which prints what it prints without a recording."""
        trace = self.path("_".join(["trace", *words]) + ".db")
        alone = sorted(self.acltape("run", "--", PROGRAM, *words).out.splitlines())
        done = self.acltape("record", "--soft", "--payload", "all", "--force", "-o", trace, "--", PROGRAM, *words)
        self.assertEqual(sorted(done.out.splitlines())[:2], alone)
        self.assertIn("next: acltape ranks", done.err)
        return trace

    def test_each_rank_has_its_calls_in_the_dialect_hccl(self):
        trace = self.recorded()
        seen = self.acltape("query", trace, "SELECT o.dialect, o.name, count(*) FROM call c JOIN op o USING (op_id) "
                            "WHERE o.name LIKE 'Hccl%' AND c.thread_id = 1 GROUP BY 1, 2").out
        for name in EACH:
            # A group of messages is a batch too.
            count = 4 if name == "HcclBatchSendRecv" else 2
            self.assertRegex(seen, rf"hccl +{name} +{count}\n")

    def rows(self, trace, sql):
        return self.acltape("query", trace, sql, "--format", "csv").out.split("\n")[1:-1]

    def test_a_batch_has_its_messages_and_an_exchange_its_matrix(self):
        """The parts of a rank follow from the matrix. Both arrays are overwritten after the calls."""
        trace = self.recorded()
        for rank, sent, received in (("0", 400, 300), ("1", 350, 450)):
            self.assertEqual(self.rows(trace, "SELECT DISTINCT replace(matrix, ',', ' '), sent_bytes, received_bytes "
                                       f"FROM collective WHERE op = 'HcclAlltoAllVC' AND rank = {rank}"),
                             [f"[100 300 200 150],{4 * sent},{4 * received}"])
            other = 1 - int(rank)
            self.assertEqual(
                self.rows(trace, "SELECT item, message, peer, count, dtype, sent_bytes, received_bytes FROM collective "
                          f"WHERE op = 'HcclBatchSendRecv' AND rank = {rank} ORDER BY call_id, item LIMIT 8"),
                [f"0,send,{other},300,fp32,1200,", f"1,recv,{other},300,fp32,,1200", f"2,recv,{other},100,int32,,400",
                 f"3,send,{other},100,int32,400,", f"4,send,{other},0,fp32,0,", f"5,recv,{other},0,fp32,,0",
                 f"0,recv,{other},50,fp32,,200", f"1,send,{other},50,fp32,200,"])
            # What messages with elements received is kept, in each of two rounds.
            kept = self.rows(trace, "SELECT s.bytes FROM snapshot s JOIN collective c USING (call_id) WHERE c.item = 0 "
                             f"AND c.rank = {rank} AND s.moment = 'after' ORDER BY s.rowid")
            self.assertEqual(kept, ["1200", "400", "200"] * 2)
        self.assertEqual(self.rows(trace, "SELECT message, count(*) FROM collective WHERE peer IS NOT NULL GROUP BY 1"),
                         ["recv,18", "send,18"])

    def test_a_group_is_a_batch_for_each_communicator_and_stream(self):
        trace = self.recorded("group")
        for rank in ("0", "1"):
            self.assertEqual(
                self.rows(trace, "SELECT dense_rank() OVER (ORDER BY call_id), item, message, count FROM collective "
                          f"WHERE rank = {rank} AND status = 0 ORDER BY call_id, item"),
                ["1,0,recv,100", "1,1,send,100", "2,0,send,30", "2,1,recv,30", "2,2,send,20", "2,3,recv,20"])
        failed = self.rows(trace, "SELECT op, peer, status FROM collective WHERE status <> 0")
        self.assertEqual(failed, ["HcclSend,7,1"] * 2)
        self.acltape("ranks", trace)
        for process in ("1", "2"):
            done = self.acltape("replay", trace, "--level", "acl", "--process", process)
            self.assertIn("equal bit for bit", done.out)
        self.assertIn("equal bit for bit on 2 ranks", self.acltape("replay", trace, "--ranks", "all").out)

    def test_a_rank_alone_replays_bit_for_bit_in_each_way(self):
        trace = self.recorded()
        for process in ("1", "2"):
            for words in ([], ["--mode", "captured"], ["--streams", "flat"], ["--repetitions", "2"]):
                with self.subTest(process=process, words=words):
                    done = self.acltape("replay", trace, "--level", "acl", "--process", process, *words)
                    self.assertIn("equal bit for bit", done.out)

    def test_collectives_in_a_graph_are_left_out_and_the_reason_is_told(self):
        trace = self.recorded("captured")
        done = self.acltape("replay", trace, "--level", "acl", "--process", "1", code=125)
        self.assertIn("HcclAllReduce was left out", done.out + done.err)
        self.assertIn("in a graph each execution received something else from the other ranks", done.out + done.err)
        # What depends on it is no difference of the program.
        self.assertRegex(done.out, r"outputs different +0\n")
        self.assertRegex(done.out, r"outputs that depend on what was left out +[1-9]")
        self.assertIn("replay with --ranks all", done.err)

    def test_all_ranks_together_run_their_collectives_also_in_graphs(self):
        for words in ([], ["captured"]):
            trace = self.recorded(*words)
            for options in ([], ["--mode", "captured"], ["--streams", "flat"]):
                with self.subTest(words=words, options=options):
                    done = self.acltape("replay", trace, "--ranks", "all", *options)
                    self.assertIn("equal bit for bit on 2 ranks", done.out)
                    self.assertNotIn("left out", done.out)
                    self.assertRegex(done.out, r"collectives and messages, in graphs too +84\n")

    def test_a_difference_names_the_rank_where_it_began(self):
        """Rank 1 gets the input of rank 0; the collectives bring that to rank 0 too."""
        right = self.recorded()
        inputs = ("SELECT s.digest FROM snapshot s JOIN call c USING (call_id) JOIN thread t USING (thread_id) "
                  "WHERE c.op = 'aclrtMemcpy' AND s.moment = 'before' AND s.bytes = 4000 AND t.process_id = {}")
        of_rank = {0: 1, 1: 2}
        trace = self.changed_copy(right, "input.db", "UPDATE snapshot SET digest = (" + inputs.format(of_rank[0]) +
                                  ") WHERE digest = (" + inputs.format(of_rank[1]) + ") AND moment = 'before'")
        done = self.acltape("replay", trace, "--ranks", "all", code=1)
        self.assertRegex(done.out, r"different: \d+ of 68 compared outputs; "
                                   r"first on rank \d( \(and others as early\))?, "
                                   r"in HcclAllReduce \(call \d+\) at two_ranks.cpp:\d+, after 1 collective\b")
        self.assertIn("reproduce", done.out)

    def test_a_damaged_row_is_named(self):
        trace = self.changed_copy(self.recorded(), "odd.db", "INSERT INTO layout(layout_id, dtype, shape, strides) "
                                  "VALUES (1000000000, 'float32', '[1]', '[1]')")
        done = self.acltape("ranks", trace, code=3)
        self.assertEqual(done.out, "")
        self.assertIn("row 1000000000 of its table layout", done.err)

    def test_each_rank_has_one_of_the_visible_devices(self):
        trace = self.recorded()
        for visible, code in (("1,0", 0), ("0", 2)):
            done = self.acltape("replay", trace, "--ranks", "all", code=code,
                                env={**os.environ, "ASCEND_RT_VISIBLE_DEVICES": visible})
            wanted = "equal bit for bit" if code == 0 else "ASCEND_RT_VISIBLE_DEVICES names 1"
            self.assertIn(wanted, done.out + done.err)

    def test_ranks_together_need_all_ranks_and_no_other_choice(self):
        right = self.recorded()
        alone = self.changed_copy(right, "alone.db", "DELETE FROM communicator WHERE rank = 1")
        done = self.acltape("replay", alone, "--ranks", "all", code=2)
        self.assertSentence(done, "one rank with communicators", "leave out --ranks")
        part = self.changed_copy(right, "part.db", "UPDATE communicator SET ranks = 3")
        self.assertSentence(self.acltape("replay", part, "--ranks", "all", code=3), "2 of 3 ranks")
        for words in (["--process", "1"], ["--plan", "p.json"], ["--spread"], ["--noise-runs", "3"],
                      ["--repetitions", "2"], ["--inputs", "golden"], ["--data", "synthesised"]):
            done = self.acltape("replay", right, "--ranks", "all", *words, code=2)
            self.assertSentence(done, "--ranks all", "leave out " + words[0])
        old = self.changed_copy(right, "old.db", "UPDATE signature_argument SET kind = 'int', integer = 1 "
                                "WHERE name IN ('recvCounts', 'sendCounts')")
        self.assertSentence(self.acltape("replay", old, "--ranks", "all", code=3), "counts for each rank",
                            "record the program again")

    def test_without_values_a_replay_says_what_to_record(self):
        trace = self.path("none.db")
        self.acltape("record", "--soft", "--payload", "none", "--force", "-o", trace, "--", PROGRAM)
        done = self.acltape("replay", trace, "--level", "acl", "--process", "1", code=3)
        self.assertIn("record", done.err)


if __name__ == "__main__":
    main()
