#!/usr/bin/env python3
"""Instructions that recording adds to a call, held against the figures of cost_figures.json.

Times of a shared machine scatter by several hundredths, so a small rise cannot be seen in them. Callgrind
counts instructions, and the same program gives the same count on an idle machine and on a busy one.

What is counted is the recorded program minus the unrecorded one. That holds everything that the program
pays: the recorder's own code, the second look-up of the dispatcher, what libtorch does for the recorder's
callbacks, and allocations. Instructions by object file would leave out the last three. Imports and the
construction of a model cancel out: each program runs with few repetitions and with many, and the difference
is divided by the repetitions between and by the leaves of one. The collector is another process and is not
counted. Callgrind shows programs a processor with AVX2 at most, so that kernels are the same on most machines,
and they cancel out too.

Two things would make the difference scatter and are kept away. The allocator of glibc takes up to 30
instructions a call more or less by how the heap happens to lie, so both programs run over
constant_allocator.c. The interpreter finds attributes by a cache
that is hashed by address, which takes up to 2 % more or fewer, so its own instructions are left out on both
sides. With glibc's allocator the recorder adds less
than these figures, because it keeps blocks for the next allocation.

The figures hold for one compiler, one Python and one PyTorch. The test is skipped (77) with others and without
valgrind. A rise of more than 5 % fails. `ninja -C build update_cost_figures` writes new figures for a rise that is
meant.
"""
import json
import os
import platform
import shutil
import sqlite3
import sys
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, "tests", "cli"), os.path.join(SOURCE, "bench")]
from callgrind_dump import read_dumps  # noqa: E402
from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, run  # noqa: E402

FOLDER = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = os.environ.get("ACLTAPE_COST_LIBRARIES", os.path.join(SOURCE, "build", "tests", "recorder"))
FIGURES = os.path.join(FOLDER, "cost_figures.json")
WINDOW, ALLOCATOR, PLANTED = (os.path.join(LIBRARIES, f"lib{name}.so") for name in
                              ("count_window", "constant_allocator", "planted_allocation"))
MOST_RISE = 1.05

def ask_python(expression):
    return run(TORCH_PYTHON, "-c", f"import platform, sys, torch; print({expression})").out.strip()


def counted_with():
    """The versions and settings that the figures depend on."""
    torch, python = ask_python("torch.__version__, platform.python_version()").split()
    return {"torch": torch, "python": python, "compiler": os.environ.get("ACLTAPE_COMPILER", ""),
            "processor": platform.machine()}


def read_figures():
    with open(FIGURES) as file:
        return json.load(file)


def read_windows(dump):
    """Instructions by window of a file of callgrind's, without those in the interpreter's own object."""
    return {window: sum(count for (library, _), count in counts.items()
                        if not library.startswith(("python", "libpython")))
            for window, _, counts in read_dumps(dump)}


def risen(figures, counts):
    """A sentence for each program whose calls take more instructions than the figures allow."""
    return [f"{name}: {counts[name]:.1f} instructions a call, {figures[name]:.1f} before "
            f"({counts[name] / figures[name] - 1:+.1%})"
            for name in figures if counts[name] > MOST_RISE * figures[name]]


class Cost(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = ask_python("sys.executable")  # valgrind does not follow a script that starts it
        cls.unrecorded, _ = cls.windows("unrecorded")
        cls.counts = cls.added("recorded")
        print(f"instructions that recording adds to a call: {cls.counts}", flush=True)

    @classmethod
    def windows(cls, name, *preloaded, recorded=False):
        """Runs the programs: instructions by program and its repetitions, and the trace."""
        trace, dump = (os.path.join(cls.folder, f"{name}.{suffix}") for suffix in ("db", "callgrind"))
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("PYTHON", "OMP_", "ACLTAPE_", "LD_PRELOAD"))}
        environment |= {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", "OMP_NUM_THREADS": "1",
                        "OPENBLAS_NUM_THREADS": "1"}
        # The recorder's libraries come last: what is planted must be found before them.
        preload = ":".join([ALLOCATOR, *preloaded])
        command = ["sh", "-c", f'LD_PRELOAD="{preload}${{LD_PRELOAD:+:$LD_PRELOAD}}" exec "$@"', "sh",
                   "valgrind", "--tool=callgrind", "--instr-atstart=no", "--combine-dumps=yes",
                   "--dump-line=no", f"--callgrind-out-file={dump}", cls.python, "-B",
                   os.path.join(FOLDER, "counted_program.py"), WINDOW, WORKLOADS]
        if recorded:
            command = [BINARY, "record", "-o", trace, "--payload", "none", "--", *command]
        done = run(*command, env=environment)
        if done.code != 0:
            raise AssertionError(done)
        totals = {}
        for window, instructions in read_windows(dump).items():
            program, repetitions = window.rsplit(" ", 1)
            totals.setdefault(program, {})[int(repetitions)] = instructions
        return totals, trace

    @classmethod
    def added(cls, name, *preloaded):
        """Instructions that recording adds to a call, by program."""
        recorded, trace = cls.windows(name, *preloaded, recorded=True)
        added = {}
        for program, totals in recorded.items():
            few, many = sorted(totals)
            more, less = (windows[program][many] - windows[program][few]
                          for windows in (recorded, cls.unrecorded))
            calls = cls.leaves_of_a_token(trace) if program == "decoder" else 1
            added[program] = round((more - less) / (many - few) / calls, 1)
        return added

    @staticmethod
    def leaves_of_a_token(trace):
        connection = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
        (last,), (before,) = connection.execute(
            "SELECT call_id FROM call WHERE op = 'aten::argmax' ORDER BY call_id DESC LIMIT 2")
        leaves, = connection.execute("SELECT count(*) FROM call WHERE leaf AND call_id > ? AND call_id <= ?",
                                     (before, last)).fetchone()
        connection.close()
        return leaves

    def test_a_call_takes_no_more_instructions_than_before(self):
        figures = read_figures()["instructions"]
        self.assertEqual(risen(figures, self.counts), [], "if the rise is meant: ninja update_cost_figures")
        for name, figure in figures.items():
            if self.counts[name] * MOST_RISE < figure:
                print(f"{name}: less than before; ninja update_cost_figures writes it down")

    def test_one_more_allocation_for_each_call_is_noticed(self):
        planted = self.added("planted", PLANTED)
        print(f"with one more allocation for each call: {planted}")
        self.assertEqual(len(risen(read_figures()["instructions"], planted)), len(planted), planted)


def update():
    Cost.setUpClass()
    with open(FIGURES, "w") as file:
        json.dump({"counted_with": counted_with(), "instructions": Cost.counts}, file, indent=2)
        file.write("\n")
    Cost.tearDownClass()


def main():
    if TORCH_PYTHON is None:
        sys.exit("recorder.Cost needs a python3 that imports torch; scripts/setup installs it")
    if shutil.which("valgrind") is None:
        print("skipped: no valgrind; scripts/setup installs it")
        return 77
    if sys.argv[1:] == ["--update"]:
        return update()
    known, here = read_figures()["counted_with"], counted_with()
    if known != here:
        print(f"skipped: the figures were counted with {known}, and this is {here}")
        return 77
    unittest.main()


if __name__ == "__main__":
    sys.exit(main())
