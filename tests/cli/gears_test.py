#!/usr/bin/env python3
"""Capture sizes and joint graphs: acltape gears and acltape joint on recorded programs."""
import os

from harness import TORCH_PYTHON, WORKLOADS, CommandTest, main

SERVING = """
import torch
from torch.profiler import record_function
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
with torch.no_grad():
    for batch in [1, 1, 7, 2, 1, 30, 7, 2, 1, 1]:
        with record_function("step"):
            model(torch.ones(batch, 16))
"""


def facts(report):
    return {row["fact"]: row["value"] for row in report["facts"]}


class Gears(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "t.db")
        test = cls("test_sizes_come_from_the_dimension_that_varies")
        test.record(cls.trace, TORCH_PYTHON, test.script(SERVING), payload="none",
                    options=["--steps-from", "step"])

    def gears(self, *words):
        return self.json("gears", *words)

    def test_sizes_come_from_the_dimension_that_varies(self):
        report = self.gears(self.trace, "--padding-ns", "10", "--eager-ns", "1000")
        self.assertEqual(facts(report)["sizes"], 4)
        self.assertRegex(facts(report)["dimension"], r"^s0: dimension 0 of ")
        self.assertEqual([(row["gear"], row["steps"]) for row in report["gears"]],
                         [(1, 5), (2, 2), (7, 2), (30, 1)])

    def test_with_two_captures_the_rest_is_padded_or_eager(self):
        report = self.gears(self.trace, "--padding-ns", "10", "--eager-ns", "1000", "--captures",
                            "2")
        choices = {row["choice"]: row for row in report["choices"]}
        # The best of all pairs of sizes is 7 and 30: it pads 5 * 6 + 2 * 5 units.
        self.assertEqual([row["gear"] for row in report["gears"]], [7, 30])
        self.assertEqual(choices["chosen"]["cost_ns_per_step"], 40)
        self.assertEqual(choices["every size"]["fits"], "no")
        self.assertEqual(choices["eager"]["cost_ns_per_step"], 1000)

    def test_costs_come_from_the_steps(self):
        report = self.gears(self.trace, "--dimension", "s0")
        self.assertGreater(facts(report)["eager ns per step"], 0)

    def test_forty_layers_and_sixty_seven_sizes_are_held_to_1920_streams(self):
        path = self.path("sizes.csv")
        with open(path, "w") as file:
            file.write("size,count\n")
            for size in [1, 2, 4] + list(range(8, 513, 8)):
                file.write(f"{size},{1 + 4000 // size}\n")
        report = self.gears("--histogram", path, "--padding-ns", "900", "--eager-ns", "250000",
                            "--graphs-per-size", "40", "--soc", "Ascend910B1")
        choices = {row["choice"]: row for row in report["choices"]}
        self.assertEqual(choices["serving default"]["graphs"], 2680)
        self.assertEqual(choices["serving default"]["fits"], "no")
        self.assertEqual(choices["chosen"]["graphs"], 1920)
        self.assertEqual(choices["chosen"]["fits"], "yes")
        self.assertLess(choices["chosen"]["cost_ns_per_step"],
                        choices["serving default, thinned"]["cost_ns_per_step"])

    def test_errors_are_sentences(self):
        wrong = self.path("wrong.csv")
        with open(wrong, "w") as file:
            file.write("size,count\n4,one\n")
        costs = ["--padding-ns", "1", "--eager-ns", "1"]
        for words, message in (
                ([], "needs a trace"),
                (["--histogram", wrong, *costs], "line 2"),
                ([self.trace, "--dimension", "s9"], "s9"),
                ([self.trace, "--soc", "Other"], "Ascend910B")):
            with self.subTest(words=words):
                self.assertSentence(self.acltape("gears", *words, code=2), message)


class Joint(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "t.db")
        cls("test_both_partitions").record(
            cls.trace, TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"), "--steps", "3",
            "--batch-size", "16", "--width", "32", payload="none")

    def partitions(self, *words):
        report = self.json("joint", self.trace, *words)
        return report, {row["partition"]: row for row in report["partitions"]}

    def test_both_partitions(self):
        report, partitions = self.partitions()
        default, cut = partitions["default"], partitions["min-cut"]
        # Batch (16 x 64), relu and tanh (16 x 32), log-softmax (16 x 10) in float32, and what else
        # backward reads: two scalars of the loss.
        self.assertEqual(default["bytes_kept"], 4 * (16 * 64 + 2 * 16 * 32 + 16 * 10 + 2))
        self.assertEqual(default["calls_recomputed"], 0)
        self.assertLess(cut["bytes_kept"], default["bytes_kept"])
        self.assertEqual(cut["bytes_less"], default["bytes_kept"] - cut["bytes_kept"])
        self.assertEqual(cut["calls_recomputed"], len(report["recomputed"]))
        self.assertEqual(cut["ns_recomputed"],
                         sum(row["duration_ns"] for row in report["recomputed"]))
        kept = sum(row["bytes"] for row in report["kept"] if row["default"] == "kept")
        self.assertEqual(kept, default["bytes_kept"])

    def test_matrix_products_are_recomputed_when_allowed(self):
        report, partitions = self.partitions("--recompute-cube")
        self.assertIn("aten::addmm", [row["op"] for row in report["recomputed"]])
        # The batch alone: its noise is random.
        self.assertEqual(partitions["min-cut"]["bytes_kept"], 4 * 16 * 64)

    def least_bytes(self, recompute_cube):
        """Tries all sets of forward's tensors from which backward's can be computed, by the tables
        of the trace alone, and gives the least bytes."""
        first, last = self.json("query", self.trace, "SELECT first_call, last_call FROM step "
                                "WHERE step = 2")[0].values()
        rows = self.json("query", self.trace, f"""
            SELECT u.call_id, u.direction, u.buffer_id, c.op, c.phase, b.bytes,
                   b.alloc_ns < (SELECT begin_ns FROM call WHERE call_id = {first})
                   AND ifnull(b.free_ns > (SELECT max(end_ns) FROM call WHERE phase = 'backward'
                              AND call_id <= {last}), 1) AS lasts
            FROM tensor_use u JOIN call c USING (call_id) JOIN buffer b USING (buffer_id)
            WHERE u.leaf = 1 AND u.call_id BETWEEN {first} AND {last} ORDER BY u.call_id""")
        calls = {}
        for row in rows:
            calls.setdefault((row["call_id"], row["op"].split(".")[0], row["phase"]), []).append(row)
        latest, values, wanted = {}, [], set()  # a value: bytes, and what its call reads or None
        for (_, op, phase), uses in calls.items():
            reads = {use["buffer_id"] for use in uses if use["direction"] != "out"}
            writes = {use["buffer_id"]: use for use in uses if use["direction"] != "in"}
            in_place = op.endswith("_")
            if not in_place and set(writes) <= reads or op.startswith("aten::empty"):
                continue  # a view, an allocation
            inputs = {latest[buffer] for buffer in reads if buffer in latest}
            if phase == "backward":
                wanted |= inputs
                for buffer in writes:
                    latest.pop(buffer, None)
                continue
            if phase != "forward":
                continue
            barred = in_place or op in ("aten::randint", "aten::randn") or (
                op == "aten::addmm" and not recompute_cube)
            for buffer, use in writes.items():
                latest[buffer] = len(values)
                values.append((0 if use["lasts"] else use["bytes"], None if barred else inputs))
        free = [v for v, (size, _) in enumerate(values) if size == 0]
        choices = [v for v, (size, _) in enumerate(values) if size > 0]
        self.assertLess(len(choices), 20)
        best = None
        for chosen in range(1 << len(choices)):
            kept = {v for i, v in enumerate(choices) if chosen >> i & 1}
            size = sum(values[v][0] for v in kept)
            if best is not None and size >= best:
                continue
            there = kept | set(free)
            for v, (_, inputs) in enumerate(values):  # writers come before readers
                if inputs is not None and inputs <= there:
                    there.add(v)
            if wanted <= there:
                best = size
        return best

    def test_min_cut_is_the_least_of_all_sets_of_the_recorded_step(self):
        for words, recompute_cube in (([], False), (["--recompute-cube"], True)):
            with self.subTest(words=words):
                report, partitions = self.partitions("--step", "2", *words)
                self.assertEqual(partitions["min-cut"]["bytes_kept"],
                                 self.least_bytes(recompute_cube))

    def test_a_program_without_backward_is_refused(self):
        trace = self.path("forward.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch; torch.ones(3) * 2", payload="none")
        self.assertSentence(self.acltape("joint", trace, code=3),
                            "has no call of a backward pass;")
        self.assertSentence(self.acltape("joint", self.trace, "--step", "77", code=2), "no step 77")


if __name__ == "__main__":
    main()
