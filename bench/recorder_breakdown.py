#!/usr/bin/env python3
"""Says where the time goes that recording adds to a program, by thread, library and function.

    recorder_breakdown.py "add loop" --npu --payloads none inputs

One process of the program runs unrecorded and one for each way to record, in turns (bench/measured.py).
Times are microseconds of processor time per step of a workload or iteration of a loop. They come from the
kernel's account of each thread, and are the difference of a long and a short run, so that the construction
of a model is not in them; the median of the turns is shown. Further turns run under `perf record` with the
clock of the processor, and their samples share each thread's time out among libraries and functions.
perf slows the program down a little; the times by thread are of turns without it.

"waited" is time in which a thread could have run but had no core. The thread with the most processor time
and waiting for each microsecond of the program is its bottleneck.

With --npu the programs run on torch_npu on the soft device with the profile host_only, where kernels take
no time, as on a device that the host never waits for. With --device-computes as well they compute there.
"""
import argparse
import collections
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from recorded_programs import (HOST_ONLY_PROGRAMS, NPU_PROGRAMS, PROGRAMS, RECORDED, ROOT, MeasuredProcess,
                               find_python)

RECORDER = re.compile(r"libacltape_((acl_)?agent|torch)")  # the recorder's libraries in the program
# The name of a thread in /proc, and what it is here.
THREADS = {"acl_thread": "queue", "release_thread": "release", "pt_autograd": "autograd"}
FREQUENCY = 1999  # samples a second of each processor


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as lines:
            found += map(int, lines.read().split())
    return found


def role(pid, thread, collector):
    """What a thread is for: main, queue (torch_npu's), collector, or its own name."""
    if collector:
        return "collector"
    if pid == thread:
        return "main"
    with open(f"/proc/{pid}/task/{thread}/comm") as name:
        name = name.read().strip()
    for prefix, meaning in THREADS.items():
        if name.startswith(prefix):
            return meaning
    return "others"


class Observed:
    """A measured process with its threads: the program's, and the collector's if it is recorded."""

    def __init__(self, process):
        self.process, self.steps = process, 0
        self.walls, self.spent, self.waited, self.samples = [], [], [], collections.Counter()
        own = process.process.pid
        self.recorded = process.name in RECORDED
        self.collectors = [own] if self.recorded else []
        self.programs = [] if self.recorded else [own]
        for child in children(own) if self.recorded else []:
            program = os.path.basename(os.readlink(f"/proc/{child}/exe")).startswith("python")
            (self.programs if program else self.collectors).append(child)

    def account(self):
        """ns of processor time and ns of waiting for a core, by what the threads are for."""
        spent, waited = collections.Counter(), collections.Counter()
        for pid in self.programs + self.collectors:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat") as line:
                    ran, stood = map(int, line.read().split()[:2])
                meaning = role(pid, int(thread), pid in self.collectors)
                spent[meaning] += ran
                waited[meaning] += stood
        return spent, waited

    def settle(self):
        """Waits until the collector has written what waited."""
        before, now = None, 0
        while self.recorded and before != now:
            time.sleep(0.05)
            before, now = now, self.account()[0]["collector"] // 2_000_000

    def run(self, steps):
        """ns that the program took, its processor time and its waiting, the collector's rest included."""
        before = self.account()
        (wall, _, _), = self.process.turn(f"run {steps}")
        self.settle()
        after = self.account()
        return [wall] + [collections.Counter({key: late[key] - early[key] for key in late})
                         for early, late in zip(before, after)]

    def turn(self):
        short, long = max(1, self.steps // 10), self.steps
        few, many = self.run(short), self.run(long)
        self.walls.append((many[0] - few[0]) / (long - short))
        for kept, early, late in ((self.spent, few[1], many[1]), (self.waited, few[2], many[2])):
            kept.append({key: (late[key] - early[key]) / (long - short) for key in late})

    def sample(self, perf, folder):
        """One more run under perf; adds its samples by thread, library and function."""
        data = os.path.join(folder, "perf.data")
        meanings = {}
        for pid in self.programs + self.collectors:
            for thread in os.listdir(f"/proc/{pid}/task"):
                meanings[int(thread)] = role(pid, int(thread), pid in self.collectors)
        command = [perf, "record", "--quiet", "--no-buildid-cache", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", data,
                   "-p", ",".join(map(str, self.programs + self.collectors))]
        recording = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        self.process.turn(f"run {self.steps}")
        self.settle()
        recording.terminate()
        errors = recording.communicate()[1]
        script = subprocess.run([perf, "script", "-i", data, "-F", "pid,tid,ip,sym,dso"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if not script.stdout:
            sys.exit(f"recorder_breakdown: perf took no samples: {errors.strip()}")
        for line in script.stdout.splitlines():
            found = re.match(r"\s*\d+/(\d+)\s+[0-9a-f]+ (.*) \((.*?)\)$", line)
            if found:
                thread, function, library = found.groups()
                meaning = meanings.get(int(thread), "others")
                self.samples[meaning, os.path.basename(library), shortened(function)] += 1

    def by_thread(self, kept):
        return {key: statistics.median(times.get(key, 0) for times in kept) / 1e3
                for key in {key for times in kept for key in times}}

    def shares(self, key):
        """us per step by (thread, ...) where key maps a sample's place to what it counts for."""
        spent, totals = self.by_thread(self.spent), collections.Counter()
        for (thread, _, _), count in self.samples.items():
            totals[thread] += count
        shares = collections.Counter()
        for place, count in self.samples.items():
            shares[place[0], key(*place)] += spent.get(place[0], 0) * count / totals[place[0]]
        return shares


def steps_of_a_turn(observed, seconds):
    """The steps that take so long, told by a run of ever more steps until it took a fifth of that."""
    steps, wall = 10, 0
    while wall < seconds * 2e8:
        steps *= 2
        (wall, _, _), = observed.process.turn(f"run {steps}")
    return max(20, int(steps * seconds * 1e9 / wall))


def shortened(function):
    """A function's name without template arguments, parameters and the namespaces of the tree."""
    function = re.sub(r"\(anonymous namespace\)::|acltape::|\[clone .*?\]", "", function)
    for _ in range(9):
        function, changed = re.subn(r"<[^<>]*>", "", function)
        if not changed:
            break
    return re.sub(r"\(.*", "", function)[:90] or "unknown"


def print_threads(program, base, recorded):
    wall, alone = statistics.median(recorded.walls) / 1e3, statistics.median(base.walls) / 1e3
    print(f"\n{program}, {recorded.process.name}: a step takes {wall:.2f} us recorded and {alone:.2f} us "
          f"unrecorded (ratio {wall / alone:.2f}), wall clock")
    print(f"{'thread':>12} {'unrecorded':>11} {'recorded':>9} {'added':>8} {'ratio':>6} {'waited before':>14}"
          f" {'waited now':>11} {'busy':>6}")
    spent, before = recorded.by_thread(recorded.spent), base.by_thread(base.spent)
    waited, waited_before = recorded.by_thread(recorded.waited), base.by_thread(base.waited)
    loads = {}
    for thread in sorted(spent.keys() | before.keys(), key=lambda name: -spent.get(name, 0)):
        now, was = spent.get(thread, 0), before.get(thread, 0)
        if max(now, was) < 0.005 * wall:
            continue
        loads[thread] = (now + waited.get(thread, 0)) / wall
        ratio = f"{now / was:.2f}" if was > 0 else "-"
        print(f"{thread:>12} {was:>11.2f} {now:>9.2f} {now - was:>8.2f} {ratio:>6} "
              f"{waited_before.get(thread, 0):>14.2f} {waited.get(thread, 0):>11.2f} {now / wall:>6.0%}")
    total, total_before = sum(spent.values()), sum(before.values())
    print(f"{'all':>12} {total_before:>11.2f} {total:>9.2f} {total - total_before:>8.2f} "
          f"{total / total_before:>6.2f} {'':>14} {'':>11} {total / wall:>6.0%}")
    own = {thread: load for thread, load in loads.items() if thread != "collector"}
    worst = max(own, key=own.get)
    print(f"bottleneck: the thread {worst}, which ran or waited for a core {own[worst]:.0%} of the time"
          + (f"; the processors were taken to {total / wall / os.cpu_count():.0%} by this program"))


def print_libraries(base, recorded, rows):
    now, was = (side.shares(lambda thread, library, function: library) for side in (recorded, base))
    threads = [thread for thread, us in sorted(recorded.by_thread(recorded.spent).items(),
                                               key=lambda item: -item[1]) if us > 0]
    for thread in threads:
        libraries = {place[1] for place in now | was if place[0] == thread}
        if not libraries:
            continue
        print(f"\n  {thread}: us by library        unrecorded  recorded     added")
        for library in sorted(libraries, key=lambda name: was[thread, name] - now[thread, name])[:rows]:
            late, early = now[thread, library], was[thread, library]
            print(f"    {library:<30} {early:>9.3f} {late:>9.3f} {late - early:>9.3f}")


def print_functions(base, recorded, rows):
    def place(thread, library, function):
        return library, function

    now, was = recorded.shares(place), base.shares(place)
    for title, chosen in (
            ("functions of the recorder, us", lambda item: RECORDER.search(item[1][0])),
            ("functions elsewhere that took longer, us added",
             lambda item: not RECORDER.search(item[1][0]) and item[0] != "collector")):
        print(f"\n  {title}")
        added = {item: now[item] - was[item] for item in now if chosen(item)}
        for thread, (library, function) in sorted(added, key=lambda item: -added[item])[:rows]:
            print(f"    {added[thread, (library, function)]:>8.3f}  {thread:<9} {library:<28} {function}")


def observe(program, arguments, python, perf, folder, args):
    """Processes that ran the program unrecorded and recorded in each way, in turns; they have ended."""
    acltape, observed = os.path.join(args.build, "bin", "acltape"), []
    for variant in ["baseline", *args.payloads]:
        process = MeasuredProcess(acltape, python, arguments, variant, folder)
        process.turn()  # imports, first-time work
        observed.append(Observed(process))
    steps = steps_of_a_turn(observed[0], args.seconds)
    print(f"\n{program}: {python}, {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}, "
          f"{args.turns} turns of {steps} steps, {args.samples} more under perf", flush=True)
    for one in observed:
        one.steps = steps
    for _ in range(args.turns):
        for one in observed:
            one.turn()
    for _ in range(args.samples):
        for one in observed:
            one.sample(perf, folder)
    for one in observed:
        one.process.end()
    return observed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="+", help="names of bench/recorded_programs.py")
    parser.add_argument("--npu", action="store_true", help="a program of torch_npu, on the soft device")
    parser.add_argument("--device-computes", action="store_true", help="with --npu: without host_only")
    parser.add_argument("--payloads", nargs="+", choices=RECORDED, default=["none", "inputs"])
    parser.add_argument("--build", default=os.environ.get("ACLTAPE_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--turns", type=int, default=5, help="without perf, of each process")
    parser.add_argument("--samples", type=int, default=3, help="turns under perf, of each process")
    parser.add_argument("--seconds", type=float, default=1, help="the length of a turn")
    parser.add_argument("--threads", type=int, default=1, help="intra-op threads of the program")
    parser.add_argument("--rows", type=int, default=20, help="of each list of functions")
    args = parser.parse_args()

    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(args.threads)
    perf = shutil.which("perf")
    if perf is None:
        sys.exit("recorder_breakdown: perf is missing; on Debian `apt-get install linux-perf`, elsewhere "
                 "the package with the kernel's tools")
    programs = PROGRAMS
    if args.npu:
        programs = NPU_PROGRAMS if args.device_computes else HOST_ONLY_PROGRAMS
        if not args.device_computes:
            os.environ["ACLTAPE_SOFT_PROFILE"] = "host_only"
    python = find_python(args.npu)
    for program in args.program:
        if program not in programs:
            sys.exit(f"recorder_breakdown: no program {program}; there are {'; '.join(programs)}")
        with tempfile.TemporaryDirectory(dir=args.build) as folder:
            base, *recorded = observe(program, programs[program], python, perf, folder, args)
        for one in recorded:
            print_threads(program, base, one)
            print_libraries(base, one, 12)
            print_functions(base, one, args.rows)
        print(f"\nload average at the end: {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
