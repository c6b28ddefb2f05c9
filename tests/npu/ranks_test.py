#!/usr/bin/env python3
"""Programs of several ranks, each a process with a soft device of its own."""
import sqlite3

import harness


class Ranks(harness.NpuTest):
    def test_collectives_and_messages_of_two_and_four_ranks(self):
        for count in ("2", "4"):
            self.program("ranks_collectives.py", count)

    def test_training_has_the_losses_of_one_process(self):
        for kind in ("ddp", "fsdp", "fsdp2", "tensor_parallel", "zero"):
            with self.subTest(kind):
                self.program("ranks_training.py", kind)

    def test_pipelines_have_the_losses_and_weights_of_one_process(self):
        for kind, count in (("gpipe", "2"), ("1f1b", "4"), ("interleaved", "2")):
            with self.subTest(kind):
                self.program("ranks_pipelines.py", kind, count)

    def test_graphs_with_collectives_replay_what_eager_calls_give(self):
        self.program("ranks_graphs.py", "2")
        self.program("ranks_graphs.py", "4", environment={"ACLTAPE_SOFT_JITTER": "3"})

    def test_ranks_that_disagree_are_told_which_call_it_is(self):
        script = self.script("""
            import ranks, torch, torch.distributed as dist

            def wrong(rank, count):
                data = torch.ones(4 + rank).npu()
                dist.all_reduce(data)
                torch.npu.synchronize()

            if __name__ == "__main__":
                ranks.run(wrong, 2)
        """)
        done = self.call(harness.BINARY, "run", "--", harness.PYTHON, script, code=1,
                         environment={"PYTHONPATH": harness.PROGRAMS})
        told = done.stdout + done.stderr
        for words in ("EI0005", "HcclAllReduce(count 4, fp32, sum)", "HcclAllReduce(count 5, fp32, sum)"):
            self.assertIn(words, told)

    def test_a_recorded_rank_replays_alone(self):
        """Training of two ranks: what is printed stays, and each rank's work is equal bit for bit."""
        trace = f"{self.folder}/ddp.db"
        self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON,
                  f"{harness.PROGRAMS}/ranks_training.py", "ddp")
        # The program starts its ranks itself, so no environment names them.
        with sqlite3.connect(trace) as database:
            said = database.execute("SELECT count(*) FROM process WHERE rank IS NOT NULL").fetchone()
        self.assertEqual(said, (0,))
        for process in ("rank:0", "rank:1"):
            done = self.call(harness.BINARY, "lint", trace, process, code=1)
            # A capture holds collectives of HCCL.
            self.assertNotRegex(done.stdout, r"LINT-38.*c10d")
            done = self.call(harness.BINARY, "replay", trace, "--level", "acl", "--process", process)
            self.assertIn("equal bit for bit", done.stdout)
            done = self.call(harness.BINARY, "replay", trace, "--process", process)
            self.assertIn("equal bit for bit", done.stdout)
            self.replays_as_leaves(trace, process)
        for command in ("prove", "compare", "plan", "bisect"):
            self.call(harness.BINARY, command, trace, "--level", "aten", "--process", "rank:0")
        for mode in ("eager", "captured"):
            done = self.call(harness.BINARY, "replay", trace, "--ranks", "all", "--mode", mode)
            self.assertIn("equal bit for bit on 2 ranks", done.stdout)

    def test_what_collectives_received_is_kept_unless_told_otherwise(self):
        trace = f"{self.folder}/inputs.db"
        self.call(harness.BINARY, "record", "--soft", "-o", trace, "--", harness.PYTHON,
                  f"{harness.PROGRAMS}/ranks_training.py", "ddp")
        done = self.call(harness.BINARY, "replay", trace, "--level", "aten", "--process", "rank:0", code=125)
        self.assertRegex(done.stdout, r"outputs different +0\n")

    def replays_as_leaves(self, trace, process, modes=("eager", "captured")):
        """What a collective received on the device is an input of the leaf that reads it next."""
        for mode in modes:
            done = self.call(harness.BINARY, "replay", trace, "--level", "aten", "--process", process, "--mode", mode)
            self.assertIn("equal bit for bit", done.stdout)
            self.assertNotIn("no verdict", done.stderr)

    def test_leaves_of_sharded_trainings_replay_with_what_collectives_received(self):
        for kind in ("fsdp", "fsdp2", "tensor_parallel"):
            with self.subTest(kind):
                trace = f"{self.folder}/{kind}.db"
                self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON,
                          f"{harness.PROGRAMS}/ranks_training.py", kind)
                for process in ("rank:0", "rank:1"):
                    self.replays_as_leaves(trace, process)

    def test_recorded_pipelines_replay_alone_and_together(self):
        """What torch_npu makes of batch_isend_irecv, a group of messages, is a batch with its leaf of PyTorch."""
        for kind, count in (("1f1b", 2), ("gpipe", 4)):
            with self.subTest(kind):
                trace = f"{self.folder}/{kind}.db"
                self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON,
                          f"{harness.PROGRAMS}/ranks_pipelines.py", kind, count)
                told = self.call(harness.BINARY, "ranks", trace).stdout
                self.assertRegex(told, r"findings +0\n")
                with sqlite3.connect(trace) as database:
                    batches, messages, unasked = database.execute(
                        "SELECT count(DISTINCT call_id), count(peer), sum(parent_id IS NULL) FROM collective "
                        "WHERE op = 'HcclBatchSendRecv'").fetchone()
                    ranks = database.execute("SELECT DISTINCT process_id FROM collective").fetchall()
                self.assertEqual(unasked, 0)
                if kind == "1f1b":  # in the steady state each rank sends and receives at once
                    self.assertGreater(messages, batches)
                self.assertEqual(len(ranks), count)
                for (process,) in ranks:
                    done = self.call(harness.BINARY, "replay", trace, "--level", "acl", "--process", process)
                    self.assertIn("equal bit for bit", done.stdout)
                    self.replays_as_leaves(trace, process)
                for mode in ("eager", "captured"):
                    done = self.call(harness.BINARY, "replay", trace, "--ranks", "all", "--mode", mode)
                    self.assertIn(f"equal bit for bit on {count} ranks", done.stdout)

    def test_graphs_with_collectives_replay_with_all_ranks(self):
        trace = f"{self.folder}/graphs.db"
        self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON,
                  f"{harness.PROGRAMS}/ranks_graphs.py", "4")
        done = self.call(harness.BINARY, "replay", trace, "--ranks", "all", environment={"ACLTAPE_SOFT_JITTER": "5"})
        self.assertIn("equal bit for bit on 4 ranks", done.stdout)
        self.assertNotIn("left out", done.stdout)
        self.call(harness.BINARY, "ranks", trace)
        # What collectives receive within a graph is kept at no level, and what depends on it is not compared.
        done = self.call(harness.BINARY, "replay", trace, "--process", "rank:0", code=125)
        self.assertRegex(done.stdout, r"outputs different +0\n")
        done = self.call(harness.BINARY, "replay", trace, "--level", "aten", "--process", "rank:0", code=3)
        self.assertRegex(done.stderr, r"reads what call \d+ c10d::allreduce_ received, which the trace does not hold")
        with sqlite3.connect(trace) as database:  # an eager result that no collective explains
            changed = database.execute(
                "UPDATE snapshot SET digest = (SELECT digest FROM snapshot o WHERE o.bytes = snapshot.bytes AND "
                "o.digest <> snapshot.digest LIMIT 1) WHERE rowid = (SELECT s.rowid FROM snapshot s JOIN call c "
                "USING (call_id) JOIN thread t USING (thread_id) JOIN communicator m USING (process_id) "
                "WHERE m.rank = 0 AND c.op LIKE 'aclnn%' AND c.model_id IS NULL AND s.moment = 'after' "
                "AND s.bytes > 64 ORDER BY s.call_id LIMIT 1)").rowcount
        self.assertEqual(changed, 1)
        self.call(harness.BINARY, "replay", trace, "--process", "rank:0", code=1)

    def test_compiled_steps_with_collectives(self):
        """What torch.compile makes of collectives, in the graphs of both backends."""
        for backend in ("npugraph_ex", "torchair"):
            with self.subTest(backend):
                trace = f"{self.folder}/{backend}.db"
                done = self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--",
                                 harness.PYTHON, f"{harness.PROGRAMS}/ranks_compiled.py", backend)
                self.assertIn("equal\n", done.stdout)
                for mode in ("eager", "captured"):
                    done = self.call(harness.BINARY, "replay", trace, "--ranks", "all", "--mode", mode)
                    self.assertIn("equal bit for bit on 2 ranks", done.stdout)
                    self.assertNotIn("left out:", done.stdout)
                self.assertRegex(self.call(harness.BINARY, "ranks", trace).stdout, r"findings +0\n")

    def test_products_that_communicate(self):
        for count in ("2", "4"):
            self.program("ranks_fused.py", count)
        self.program("ranks_fused.py", "2", "graph")

    def test_products_that_communicate_in_another_order_are_found(self):
        script = self.script("""
            import ranks, torch, torch.distributed as dist, torch_npu

            def swapped(rank, count):
                group = dist.distributed_c10d._get_default_group()
                name = group._get_backend(torch.device("npu")).get_hccl_comm_name(rank)
                x, weight = torch.ones(8, 16).half().npu(), torch.ones(16, 4).half().npu()
                if rank == 0:
                    torch_npu.npu_mm_all_reduce_base(x, weight, name)
                else:
                    torch_npu.npu_mm_reduce_scatter_base(x, weight, name, count)
                torch.npu.synchronize()

            if __name__ == "__main__":
                ranks.run(swapped, 2)
        """)
        trace = f"{self.folder}/swapped.db"
        self.call(harness.BINARY, "record", "--soft", "-o", trace, "--", harness.PYTHON, script, code=1,
                  environment={"PYTHONPATH": harness.PROGRAMS})
        done = self.call(harness.BINARY, "ranks", trace, "--table", "findings", code=1)
        self.assertRegex(done.stdout, r"RANK-01 +error +rank 0, rank 1")
        for words in ("aclnnMatmulAllReduce at script.py:9", "aclnnMatmulReduceScatter at script.py:11"):
            self.assertIn(words, done.stdout)

    def test_tokens_go_to_the_experts_of_other_ranks(self):
        self.program("ranks_experts.py", "4")
        self.program("ranks_experts.py", "2", "graph", environment={"ACLTAPE_SOFT_SOC_NAME": "Ascend910_9391"})

    def test_recorded_operators_that_communicate_replay_alone_and_together(self):
        for program in ("ranks_fused", "ranks_experts"):
            with self.subTest(program=program):
                self.replays_alone_and_together(program)

    def replays_alone_and_together(self, program):
        """Alone, each has what the recording received; together the ranks compute it again."""
        trace = f"{self.folder}/{program}.db"
        self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON,
                  f"{harness.PROGRAMS}/{program}.py", "2")
        told = self.call(harness.BINARY, "ranks", trace).stdout
        self.assertNotRegex(told, r"meetings compared between ranks +0\n")
        self.assertRegex(told, r"findings +0\n")
        for process in ("rank:0", "rank:1"):
            for mode in ("eager", "captured"):
                done = self.call(harness.BINARY, "replay", trace, "--process", process, "--mode", mode)
                self.assertIn("equal bit for bit", done.stdout)
            self.replays_as_leaves(trace, process, modes=("eager",))
        for mode in ("eager", "captured"):
            done = self.call(harness.BINARY, "replay", trace, "--ranks", "all", "--mode", mode)
            self.assertIn("equal bit for bit on 2 ranks", done.stdout)

    def test_graphs_that_send_tokens_to_experts_replay_together(self):
        trace = f"{self.folder}/experts.db"
        self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON,
                  f"{harness.PROGRAMS}/ranks_experts.py", "2", "graph")
        for mode in ("eager", "captured"):
            done = self.call(harness.BINARY, "replay", trace, "--ranks", "all", "--mode", mode)
            self.assertIn("equal bit for bit on 2 ranks", done.stdout)
            self.assertNotIn("left out", done.stdout)


if __name__ == "__main__":
    harness.main()
