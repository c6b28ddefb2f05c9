#!/usr/bin/env python3
"""The adapter's profiler, and PyTorch's with the device's activities: both finish, and their tables hold what the
device did. To see one: record nothing, and run tests/npu/programs/profiled.py by `acltape run`."""
import collections
import csv
import glob
import json
import os

import harness

TABLES = ("api_statistic.csv", "kernel_details.csv", "op_statistic.csv", "operator_details.csv", "step_trace_time.csv",
          "task_time.csv", "trace_view.json")
KINETO = """
    import collections, json, torch, torch_npu
    from torch.profiler import ProfilerActivity, profile
    x = torch.randn(64, 64).npu()
    (x @ x).relu()
    torch.npu.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as done:
        for _ in range(3):
            y = (x @ x).relu()
        torch.npu.synchronize()
    done.export_chrome_trace("k.json")
    events = json.load(open("k.json"))["traceEvents"]
    print(sorted(collections.Counter(event["name"] for event in events if event.get("cat") == "kernel").items()))
"""


class ProfiledSteps(harness.NpuTest):
    def profiled(self, what, *before, **environment):
        """The folder of the tables."""
        results = os.path.join(self.folder, "results" + "".join(environment.values()))
        program = os.path.join(harness.PROGRAMS, "profiled.py")
        done = self.call(harness.BINARY, *before, "--", harness.PYTHON, program, results, what, environment=environment)
        self.assertIn("profiled", done.stdout)
        self.assertNotIn("failed", done.stdout + done.stderr)
        folder, = glob.glob(results + "/*_ascend_pt/ASCEND_PROFILER_OUTPUT")
        wanted = {*TABLES} if what == "steps" else {*TABLES} - {"operator_details.csv"}  # a replay is no operator
        self.assertLessEqual(wanted, {*os.listdir(folder)})
        return folder

    def rows(self, folder, name):
        with open(os.path.join(folder, name), newline="") as file:
            return list(csv.DictReader(file))

    def test_each_step_has_its_kernels_and_each_operator_its_times(self):
        for queue in "012":
            with self.subTest(task_queue=queue):
                folder = self.profiled("steps", "run", TASK_QUEUE_ENABLE=queue)
                self.assertEqual([row["Step"] for row in self.rows(folder, "step_trace_time.csv")], ["1", "2"])
                self.assertTrue(all(float(row["Computing"]) > 0 for row in self.rows(folder, "step_trace_time.csv")))
                kernels = self.rows(folder, "kernel_details.csv")
                named = collections.Counter((row["Step Id"], row["Name"]) for row in kernels)
                self.assertEqual([named[step, "aclnnAddmm"] for step in "12"], [2, 2])
                times = {row["Name"]: float(row["Device Total Duration(us)"])
                         for row in self.rows(folder, "operator_details.csv")}
                self.assertGreater(times["aten::addmm"], 0)
                with open(folder + "/trace_view.json") as file:
                    flows = collections.Counter(event.get("cat") for event in json.load(file) if event["ph"] == "s")
                self.assertGreater(flows["async_npu"], 20)

    def test_the_same_while_it_is_recorded(self):
        trace = os.path.join(self.folder, "t.db")
        self.profiled("steps", "record", "--soft", "--quiet", "-o", trace)
        rows = json.loads(self.call(harness.BINARY, "query", trace, "--format", "json",
                                    "SELECT count(*) AS n FROM call WHERE op = 'aten::addmm'").stdout)
        self.assertEqual(rows, [{"n": 8}])

    def test_replays_of_a_graph_have_the_kernels_of_the_graph(self):
        folder = self.profiled("graph", "run")
        named = collections.Counter(row["Name"] for row in self.rows(folder, "kernel_details.csv"))
        self.assertEqual((named["aclnnMatmul"], named["aclnnTanh"]), (3, 3), named)
        self.assertEqual(self.rows(folder, "op_statistic.csv")[0]["Count"], "3")

    def test_pytorchs_own_profiler_gets_the_kernels(self):
        done = self.call(harness.BINARY, "run", "--", harness.PYTHON, self.script(KINETO))
        self.assertEqual(done.stdout.splitlines()[-1], "[('aclnnMatmul', 3), ('aclnnRelu', 3)]")


if __name__ == "__main__":
    harness.main()
