#!/usr/bin/env python3
"""Takes programs of users' shape through every command and checks every answer against what is known of them.

    matrix.py [--programs NAMES] [--commands NAMES] [--cells N --seed WORD] [--keep FOLDER] [--report FILE] [--list]

Programs, commands and what is known of them are rows of programs.toml and commands.toml; a new command joins by a
row. A cell that is known to fail stands in known.toml, which may only shrink: one that no longer fails is a failure
itself. --cells takes so many cells, chosen by the seed (the commit, unless it is given). --keep keeps the recordings
for the next run. ACLTAPE_BINARY, ACLTAPE_SDK, ACLTAPE_PYTHON and ACLTAPE_TORCH2_PYTHON name what is tested; without
the last one the programs of torch 2 and torch_npu are skipped, and the last line says so.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import subprocess
import sys
import tempfile
import time

import tables
from cells import Cell
from checks import CHECKS
from recordings import PYTHONS, Recordings


def chosen(names, rows):
    """The rows with these names, all without names; an unknown name ends the run."""
    if not names:
        return rows
    wanted = names.split(",")
    unknown = set(wanted) - {row.name for row in rows}
    if unknown:
        sys.exit(f"matrix.py: no row is named {', '.join(sorted(unknown))}; --list lists the names")
    return [row for row in rows if row.name in wanted]


def head():
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=tables.SOURCE)
    return done.stdout.strip() or "0"


def sample(cells, count, seed):
    """Cells of few programs of each device, because a recording costs more than a command."""
    draw = random.Random(seed)
    by_device = collections.defaultdict(lambda: collections.defaultdict(list))
    for program, command in cells:
        by_device[program.device][program.name].append((program, command))
    taken = []
    for device in sorted(by_device):
        names = sorted(by_device[device])
        draw.shuffle(names)
        rest = count // len(by_device)
        for name in names:
            some = by_device[device][name]
            draw.shuffle(some)
            taken += some[:min(rest, 24)]
            rest -= min(rest, 24, len(some))
    return taken


def carry_out(program, commands, recordings):
    """All cells of one program, one after the other, so that each recording is made once."""
    done = []
    for command in commands:
        with Cell(program, command, recordings) as cell:
            try:
                cell.carry_out(CHECKS)
            except Exception as error:  # a check that meets what it does not know is a failure of its cell
                cell.fail("check", f"{type(error).__name__}: {error}")
            done.append(cell)
    return done


def judged(failures, complete):
    """Parts failures into new and known ones, and finds the known ones that did not occur."""
    known = tables.known()
    new = [each for each in failures if not any(row.covers(each.program, each.command, each.kind) for row in known)]
    gone = [row for row in known if not any(row.covers(each.program, each.command, each.kind) for each in failures)]
    return new, gone if complete else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", help="names with commas")
    parser.add_argument("--commands", help="names with commas")
    parser.add_argument("--cells", type=int, default=0, help="so many cells, chosen by the seed; 0: all")
    parser.add_argument("--seed", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", help="folder of recordings, kept for the next run")
    parser.add_argument("--report", help="write every failure to this file")
    parser.add_argument("--list", action="store_true", help="list programs and commands")
    args = parser.parse_args()
    programs, commands = chosen(args.programs, tables.programs()), chosen(args.commands, tables.commands())
    if args.list:
        print(f"programs ({len(programs)}):", *(row.name for row in programs))
        print(f"commands ({len(commands)}):", *(row.name for row in commands))
        return 0
    skipped = [row.name for row in programs if row.python and not PYTHONS[row.python]]
    cells = [(program, command) for program in programs for command in commands
             if program.name not in skipped and command.applies_to(program)]
    if args.cells:
        cells = sample(cells, args.cells, args.seed or head())
    by_program = collections.defaultdict(list)
    for program, command in cells:
        by_program[program.name].append((program, command))
    begin = time.monotonic()
    done = []
    with tempfile.TemporaryDirectory(prefix="acltape_recordings_") as scratch:
        folder = os.path.abspath(args.keep) if args.keep else scratch
        os.makedirs(folder, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            turns = [pool.submit(carry_out, row[0][0], [command for _, command in row], Recordings(folder))
                     for row in by_program.values()]
            for turn in concurrent.futures.as_completed(turns):
                done += turn.result()
                if sys.stdout.isatty():
                    print(f"\r{len(done)} of {len(cells)} cells", end="", flush=True)
    failures = [failure for cell in done for failure in cell.failures]
    new, gone = judged(failures, complete=not (args.cells or args.programs or args.commands or skipped))
    if args.report:
        with open(args.report, "w", encoding="utf-8") as file:
            file.write("\n".join(sorted(map(str, failures))) + "\n")
    return summary(done, failures, new, gone, skipped, time.monotonic() - begin)


def summary(done, failures, new, gone, skipped, seconds):
    for failure in sorted(new, key=lambda each: (each.kind, each.program, each.command))[:60]:
        print(failure)
    for row in gone:
        print(f"known.toml: {row.program} x {row.command} no longer fails by \"{row.kind}\"; take its row out")
    programs, commands = {cell.program.name for cell in done}, {cell.command.name for cell in done}
    print(f"\n{len(programs)} programs, {len(commands)} commands, {len(done)} cells, "
          f"{sum(cell.applied for cell in done)} of them applied, {seconds:.0f} s")
    for kind, count in collections.Counter(failure.kind for failure in failures).most_common():
        print(f"  {count:5} {kind}")
    slow = sorted(done, key=lambda cell: -cell.seconds)[:3]
    print("slowest:", *(f"{cell.program.name} x {cell.command.name} {cell.seconds:.1f} s" for cell in slow))
    if skipped:
        print(f"skipped, because ACLTAPE_TORCH2_PYTHON names no interpreter: {len(skipped)} programs")
    print(f"{len(new)} new failures, {len(failures) - len(new)} known ones, {len(gone)} known ones that are gone")
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main())
