#!/usr/bin/env python3
"""`record` ends with what it took from the program, and `info` keeps it.

Times are held loosely: the thread's time by what the program surely takes, and the recorder's part of it between
nothing and all.
"""
import json
import re
import signal
import sqlite3

from harness import BINARY, TORCH_PYTHON, CommandTest, main, run

# Prints how long its calls took, in nanoseconds.
LOOP = """
import os, sys, time
import torch
torch.set_num_threads(1)
a = torch.ones(64)
b = a + a
time.sleep(0.3)
begin = time.monotonic_ns()
while time.monotonic_ns() < begin + 500_000_000:
    a + b
print(time.monotonic_ns() - begin, flush=True)
if "kill" in sys.argv:
    os.kill(os.getpid(), 9)
"""

# Threads and processes, each with calls.
SEVERAL = """
import os, threading
import torch
torch.set_num_threads(1)
def work():
    a = torch.ones(64)
    for _ in range(3000):
        a + a
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
child = os.fork()
work()
if child == 0: os._exit(0)
os.waitpid(child, 0)
"""

# Writes more than a ring of 64 KiB holds, at once.
LARGE = """
import torch
torch.set_num_threads(1)
for i in range(60):
    torch.full((100_000,), float(i)).add(1)
"""

TOOK = re.compile(r"^acltape: recording took (about \S+ % of the busiest thread's time \(main thread.*: \S+ \S+ of "
                  r"\S+ \S+.*\))$", re.MULTILINE)
WAITED = re.compile(r"^acltape: threads waited for room in full rings: (main thread \S+ \S+; .+)$", re.MULTILINE)


class RecordingCost(CommandTest):
    def cost(self, trace):
        with sqlite3.connect(trace) as database:
            rows = dict(database.execute("SELECT key, value FROM meta WHERE key IN ('recording_cost', 'wall_ns')"))
        return json.loads(rows["recording_cost"]), int(rows["wall_ns"])

    def facts(self, trace):
        return {row["fact"].strip(): row["value"] for row in self.json("info", trace)["trace"]}

    def test_the_share_of_a_loop_is_told_and_kept(self):
        trace = self.path("loop.db")
        recorded = self.record(trace, TORCH_PYTHON, self.script(LOOP), payload="none")
        told = TOOK.findall(recorded.err)
        self.assertEqual(len(told), 1, recorded)
        self.assertEqual(self.facts(trace)["recording took"], told[0])
        cost, wall_ns = self.cost(trace)
        thread = cost["threads"][0]
        self.assertGreater(thread["timed_hooks"], 64)
        self.assertGreater(thread["own_ns"], 0, cost)
        self.assertLess(thread["own_ns"], 0.9 * thread["counted_ns"], cost)
        # What lies between calls is part of the thread's time, what lies before the first is not.
        self.assertGreater(thread["counted_ns"], 300_000_000, cost)
        self.assertLess(thread["counted_ns"], wall_ns, cost)

    def test_the_time_while_recording_is_closed_does_not_count(self):
        trace = self.path("closed.db")
        recorded = self.record(trace, TORCH_PYTHON, self.script(LOOP), payload="none",
                               options=["--start-closed", "--keep-empty"])
        self.assertNotIn("recording took", recorded.err)
        recorded = self.record(trace, TORCH_PYTHON, self.script(LOOP), payload="none", options=["--duration", "0.01"])
        cost, _ = self.cost(trace)
        for thread in cost["threads"]:
            self.assertLess(thread["counted_ns"], int(recorded.out), cost)

    def test_a_program_that_is_killed(self):
        trace = self.path("killed.db")
        recorded = self.record(trace, TORCH_PYTHON, self.script(LOOP), "kill", payload="none",
                               code=128 + signal.SIGKILL)
        self.assertEqual(len(TOOK.findall(recorded.err)), 1, recorded)

    def test_threads_and_processes(self):
        trace = self.path("several.db")
        self.record(trace, TORCH_PYTHON, self.script(SEVERAL), payload="none")
        cost, _ = self.cost(trace)
        self.assertEqual(len([thread for thread in cost["threads"] if thread["timed_hooks"] > 64]), 4, cost)
        for thread in cost["threads"]:
            self.assertGreater(thread["own_ns"], 0, cost)

    def test_a_full_ring_is_told_with_what_would_have_spared_it(self):
        trace = self.path("waits.db")
        recorded = self.record(trace, TORCH_PYTHON, self.script(LARGE), payload="all", options=["--ring-size", "64K"])
        told = WAITED.findall(recorded.err)
        self.assertEqual(len(told), 1, recorded)
        self.assertEqual(self.facts(trace)["waits for room in full rings"], told[0])
        self.assertRegex(told[0], r"; --(payload (inputs|digest)|ring-size \d+[KMG]|backlog \d+[MG])"
                                  r"( or --(ring-size|backlog) \d+[KMG])? would have spared it$", recorded)
        self.assertNotIn("recorder_stall", recorded.err)  # it is said once
        rows = [row for row in self.json("info", trace)["ledger"] if row["kind"] == "recorder_stall"]
        self.assertEqual(len(rows), 1)
        self.assertTrue(told[0].endswith("; " + rows[0]["remedy"]), (told, rows))
        cost, _ = self.cost(trace)
        self.assertGreater(cost["threads"][0]["output_bytes"], 60 * 400_000)
        self.assertIn("acltape: values were kept at ", recorded.err)

    def test_quiet_says_nothing(self):
        recorded = run(BINARY, "record", "--quiet", "--force", "-o", self.path("quiet.db"), "--", TORCH_PYTHON,
                       self.script(LOOP))
        self.assertEqual(recorded.err, "", recorded)


if __name__ == "__main__":
    main()
