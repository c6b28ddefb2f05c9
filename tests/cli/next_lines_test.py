#!/usr/bin/env python3
"""What a command proposes next (`next: ...`) runs, ends well, and is not what was just refused.

Each program below is taken through each command; from what that proposes the test goes on, as a user
would who does as told, until nothing is proposed or it was seen.
"""
import os
import subprocess
import sys

from harness import BINARY, STEPS, TORCH_PYTHON, WORKLOADS, CommandTest, main, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs"))
import acl_programs  # noqa: E402

# No two operators repeat.
ONCE = """
import torch
x = torch.ones(4, 4)
y = torch.tanh(x) @ x
print(float(y.exp().sum()))
"""

# Two processes with leaves, none with a device.
FORKED = """
import os, torch
torch.set_num_threads(1)
child = os.fork()
w = torch.ones(4, 4)
for _ in range(4):
    w = torch.tanh(torch.relu(w @ w) * 0.5)
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    os._exit(0)
"""

# The child has the name that PyTorch gives to the processes of a DataLoader.
WORKER = FORKED.replace("w = torch", """if not child:
    open("/proc/self/comm", "w").write("pt_data_worker")
w = torch""", 1)

COMMANDS = ("info", "steps", "graph", "query --name top_ops", "query --list", "gears", "captures", "waits", "joint",
            "plan -o plan.json --force", "lint", "lint --fail-on never", "replay", "replay --mode captured",
            "compare --repetitions 3", "trim --calls 1- --force -o small.db", "pack --force -o packed.db",
            "redact --force -o redacted.db")


class NextLines(CommandTest):
    def follow(self, trace, command):
        """The chain of commands that begins with this one."""
        name, *options = command.split()
        line = " ".join([os.path.basename(BINARY), name, trace, *options])
        environment = dict(os.environ, PATH=f"{os.path.dirname(BINARY)}:{os.environ['PATH']}")
        seen = []
        while line not in seen and len(seen) < 9:
            seen.append(line)
            result = run("sh", "-c", line, cwd=self.folder, env=environment)
            if len(seen) > 1:
                # 1 is an answer too: findings, a difference, or that no graph can be captured.
                self.assertIn(result.code, (0, 1), f"proposed after {seen[:-1]}: {result}")
            proposed = [text for text in result.err.splitlines() if text.startswith("next: ")]
            self.assertLessEqual(len(proposed), 1, result)
            if not proposed:
                break
            line = proposed[0].removeprefix("next: ")
        return seen

    def each_of(self, trace, commands=COMMANDS):
        chains = {}
        for command in commands:
            with self.subTest(trace=trace, command=command):
                chains[command] = self.follow(trace, command)
        return chains

    def record_script(self, name, text, *options):
        self.record(self.path(name), TORCH_PYTHON, self.script(text), payload="all", options=options)

    def test_steps_that_one_graph_serves(self):
        self.record_script("steps.db", STEPS, "--steps-from", "step *")
        chains = self.each_of("steps.db")
        self.assertEqual(chains["info"][1], "acltape steps steps.db")
        for query in ("query --name top_ops", "query --list"):
            self.assertEqual(chains[query][1:], [])  # whoever asked knows the queries

    def test_shapes_that_change_at_each_step(self):
        self.record(self.path("shapes.db"), TORCH_PYTHON, os.path.join(WORKLOADS, "changing_shapes.py"),
                    payload="all")
        chains = self.each_of("shapes.db")
        # A capture was refused: another one would be refused too.
        for command in ("replay --mode captured", "compare --repetitions 3"):
            self.assertEqual(chains[command][1], "acltape steps shapes.db")
        self.assertIn(chains["plan -o plan.json --force"][1], ("acltape gears shapes.db", "acltape steps shapes.db"))

    def test_a_program_that_repeats_nothing(self):
        self.record_script("once.db", ONCE)
        chains = self.each_of("once.db")
        self.assertEqual(chains["info"][1], "acltape query once.db --name top_ops")

    def test_several_processes_without_a_device(self):
        self.record_script("forked.db", FORKED)
        self.assertRegex(self.follow("forked.db", "info")[1], r"steps forked.db --process \d")
        packed = self.acltape("pack", self.path("forked.db"), "-o", self.path("both.db"), code=0)
        self.assertRegex(packed.out, r"missing for a replay +nothing")

    def test_workers_of_a_data_loader_are_no_program_of_their_own(self):
        self.record_script("worker.db", WORKER)
        self.assertEqual(self.acltape("query", self.path("worker.db"), "SELECT count(*) FROM process",
                                      "--format", "csv", code=0).out.split()[-1], "2")
        chains = self.each_of("worker.db", ("info", "steps", "graph", "plan -o plan.json --force", "replay",
                                            "pack --force -o packed.db"))
        self.assertEqual(chains["info"][1], "acltape steps worker.db")

    def built(self, source):
        binary = self.path(source.split(".")[0])
        built = subprocess.run(acl_programs.build_line(source, binary), capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        return binary

    def test_of_several_processes_the_one_with_a_device_is_taken(self):
        binary = self.built("workload.cpp")
        line = f"{TORCH_PYTHON} {self.script(STEPS)} && {binary}"
        done = run(BINARY, "record", "--soft", "--payload", "all", "-o", self.path("mixed.db"), "--", "sh", "-c", line,
                   env=acl_programs.environment())
        self.assertEqual(done.code, 0, done)
        chains = self.each_of("mixed.db", ("info", "steps", "prove --trials 1"))
        self.assertEqual(chains["info"][1], "acltape steps mixed.db")
        self.assertIn("acltape plan mixed.db -o plan.json", chains["steps"])

    def test_after_a_race_no_replay_is_proposed(self):
        trace = self.path("race.db")
        done = run(BINARY, "record", "--level", "acl", "--payload", "all", "-o", trace, "--",
                   self.built("planted_race.cpp"), env=acl_programs.environment())
        self.assertTrue(os.path.exists(trace), done)
        self.assertNotIn("replay", self.follow("race.db", "lint")[1])

    def test_after_steps_that_only_wait_no_plan_is_proposed(self):
        done = run(BINARY, "record", "--level", "acl", "--payload", "all", "-o", self.path("waits.db"), "--",
                   self.built("value_waits.cpp"), env=acl_programs.environment())
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.json("query", self.path("waits.db"), "SELECT count(*) AS n FROM step")[0]["n"] > 0, True)
        for command in ("steps", "steps --level acl", "lint", "captures", "replay"):
            with self.subTest(command=command):
                self.assertEqual([line for line in self.follow("waits.db", command)[1:] if " plan " in line], [])

    def test_programs_of_the_c_interface(self):
        for source, options in (("workload.cpp", ()), ("workload.cpp", ("--capture",)), ("capture_fork_join.cpp", ())):
            with self.subTest(source=source, options=options):
                binary = self.built(source)
                trace = source.split(".")[0] + "".join(options) + ".db"
                done = run(BINARY, "record", "--force", "--level", "acl", "--payload", "all", "-o",
                           self.path(trace), "--", binary, *options, env=acl_programs.environment())
                self.assertTrue(os.path.exists(self.path(trace)), done)
                self.each_of(trace, ("info", "steps", "captures", "lint", "plan -o plan.json --force"))


if __name__ == "__main__":
    main()
