#!/usr/bin/env python3
"""Gives questions hostile and damaged folders of fleet tables, and looks what they answer.

A variant is a fleet with one part damaged (fleet_damage.py). A query over all calls and a prepared question are asked,
each variant in a process of its own, and of some variants by the command too. A variant passes when

  - the process ends by itself within its time and memory, without a signal and without an error of the inside,
  - the damaged part is left out by name and the answers are those of the fleet without it, or, where the damage does
    not change what is read, those of the whole fleet,
  - nothing in the folder or beside it is changed, and no other file's content is in an answer or its head,
  - and no text has characters that control a terminal.

  fleets.py --variants 200 --commands 8     from seed 1, and 8 of them by the command
  fleets.py --hours 1 --seed 77
  fleets.py --variant 4711                  this variant alone, with all that is answered
  fleets.py --variant 4711 --keep DIR       writes it to a new folder and asks nothing
"""
import argparse
import collections
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fleet"))
import packages  # noqa: E402

packages.enter()
import campaign  # noqa: E402
import duckdb  # noqa: F401, E402
import fleet_damage  # noqa: E402
import made_fleet  # noqa: E402
import recordings  # noqa: E402

from acltape import fleet  # noqa: E402
from acltape.fleet import sql  # noqa: E402
from acltape.fleet.duckdb_engine import QuestionError  # noqa: E402

RANKS = 3
TEMPORARY = "temporary"  # a folder that is empty before and after
QUESTIONS = ("SELECT rank, count(*) AS calls, sum(duration_ns) AS ns, max(step) AS step FROM call_row GROUP BY rank "
             "ORDER BY rank", "rank_memory")
# Limits of a variant: processor time and time, address space and memory.
CPU_SECONDS, SECONDS = 20, 120
ADDRESSES, MEMORY = 6 << 30, 800 << 20
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]")
BYTES = [name for name in fleet_damage.KINDS if name.startswith("bytes: ")]
OTHERS = [name for name in fleet_damage.KINDS if not name.startswith("bytes: ")]

Ended = collections.namedtuple("Ended", "signal said cpu_seconds megabytes")


def kind_of(seed):
    """Each fifth variant has other bytes; the others go through all kinds in turn."""
    if seed % 5 == 0:
        return BYTES[seed // 5 % len(BYTES)]
    return OTHERS[(seed - seed // 5 - 1) % len(OTHERS)]


def apart(work, limited=True):
    """Runs a function in a process of its own: what it returned, or why there is nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            if limited:
                resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
                resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(SECONDS)
            said = {"returned": work()}
        except BaseException:
            said = {"error": traceback.format_exc()}
        with os.fdopen(writing, "w") as file:
            json.dump(said, file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    _, status, used = os.wait4(child, 0)
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return Ended(number, json.loads(text) if text else {}, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024)


def comparable(rows):
    """Rows as JSON has them. Sums of another order differ in their last digits."""
    return [{name: float(f"{cell:.9g}") if isinstance(cell, float) else cell if isinstance(cell, (int, str))
             else None if cell is None else str(cell) for name, cell in row.items()} for row in rows]


def ask(folder):
    """What the questions answer, and the head of the last answer."""
    try:
        with fleet.open(folder, memory="500MB", threads=1) as opened:
            answers = []
            for question in QUESTIONS:
                try:
                    answers.append(comparable(opened.arrow(question).to_pylist()))
                except QuestionError as error:
                    answers.append({"sentence": str(error)})
            return {"answers": answers, "head": opened.head, "left_out": [name for name, _ in opened.folder.left_out]}
    except fleet.FolderError as error:
        return {"answers": [{"refused": str(error)}] * len(QUESTIONS), "head": [], "left_out": []}


def inventory(folder):
    """All that is in a folder, without following links."""
    told = {}
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            status = os.lstat(os.path.join(top, name))
            if name == TEMPORARY:
                continue
            told[os.path.join(top, name)] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)
    return told


class Fleets:
    """The fleet of which variants are made, and what it answers, whole and without each part."""

    def __init__(self, room):
        self.room = room
        self.base = os.path.join(room, "base")
        made_fleet.write(self.base, "night", ranks=RANKS, steps=3, more_memory=1)
        self.outside = os.path.join(room, "canary.csv")
        with open(self.outside, "w") as file:
            file.write(f"call_id,step\n{fleet_damage.CANARY},1\n")
        self.whole = self.answers(None)
        self.without = [self.answers(rank) for rank in range(RANKS)]

    def answers(self, missing):
        folder = self.copy("right")
        if missing is not None:
            os.unlink(os.path.join(folder, "manifest", f"night.{missing}.json"))
        ended = apart(lambda: ask(folder))
        said = ended.said.get("returned") or {}
        if said.get("head") != [] or not all(said["answers"]):
            raise RuntimeError(f"the fleet that is not damaged cannot be asked: {ended}")
        return said["answers"]

    def copy(self, name):
        folder = os.path.join(self.room, name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.base, folder, copy_function=os.link)
        return folder


class Variant:
    def __init__(self, fleets, seed):
        self.fleets, self.seed, self.kind = fleets, seed, kind_of(seed)
        self.rank = random.Random(f"rank {seed}").randrange(RANKS)
        self.folder = fleets.copy("variant")

    def damage(self):
        def work():
            target = fleet_damage.Target(self.folder, self.rank, random.Random(f"damage {self.seed}"),
                                         self.fleets.outside)
            return [fleet_damage.KINDS[self.kind](target), target.table]
        said = apart(work, limited=False).said
        if "returned" not in said:
            raise RuntimeError(f"variant {self.seed} ({self.kind}) cannot be made: {said.get('error')}")
        self.expected, self.table = said["returned"]

    def run(self):
        """Empty when the variant passes."""
        self.damage()
        before = inventory(self.fleets.room)
        self.ended = apart(lambda: ask(self.folder))
        wrong = self.wrong_ending() or self.wrong_texts() or self.wrong_answers()
        if not wrong and inventory(self.fleets.room) != before:
            changed = set(before.items()) ^ set(inventory(self.fleets.room).items())
            wrong = f"files were changed: {sorted(path for path, _ in changed)[:5]}"
        return wrong

    def wrong_ending(self):
        if self.ended.signal:
            return f"signal {self.ended.signal} after {self.ended.cpu_seconds:.1f} s of processor time"
        if "returned" not in self.ended.said:
            return "an error of the inside: " + self.ended.said.get("error", "nothing was said").strip()
        if self.ended.megabytes > MEMORY >> 20:
            return f"{self.ended.megabytes} MiB of memory"
        return ""

    def wrong_texts(self):
        said = self.ended.said["returned"]
        sentences = [answer.get("sentence") or answer["refused"] for answer in said["answers"]
                     if isinstance(answer, dict)]
        for line in said["head"] + sentences:
            if CONTROL.search(line) or "\n" in line:
                return f"control characters in {line!r}"
            if len(line) > 2000:
                return f"a sentence of {len(line)} letters: {line[:200]!r}"
        if fleet_damage.CANARY in json.dumps(said):
            return "the content of another file is in an answer"
        return ""

    def is_named(self):
        names = (f"rank {self.rank} of run night", f"manifest/night.{self.rank}.json")
        return any(name in names for name in self.ended.said["returned"]["left_out"])

    def wrong_answers(self):
        said = self.ended.said["returned"]
        whole, without, out = self.fleets.whole, self.fleets.without[self.rank], False
        for place, (question, answer) in enumerate(zip(QUESTIONS, said["answers"])):
            out = out or self.table is None or self.table in sql.needed(question)[1]
            if self.expected == fleet_damage.REFUSED or isinstance(answer, dict):
                if self.expected == fleet_damage.REFUSED and "refused" in answer:
                    continue
                if self.expected == fleet_damage.VALUES and "sentence" in answer:
                    continue
                return f"expected {self.expected}, and the answer to {question!r} is {str(answer)[:300]}"
            right = {fleet_damage.OUT: [without] if out else [whole], fleet_damage.WHOLE: [whole]}.get(
                self.expected, [without, whole])
            if any(answer == each[place] for each in right):
                if answer == without[place] and not self.is_named():
                    return f"the part is missing in the answer to {question!r}, and not named"
            elif self.expected != fleet_damage.VALUES or self.is_named() or place == 0 and self.of_others(
                    answer) != without[0]:
                return f"expected {self.expected}, and the answer to {question!r} is {str(answer)[:300]}"
        return ""

    def of_others(self, rows):
        return [row for row in rows if row["rank"] != self.rank]

    def wrong_command(self, report):
        """What is wrong with the command that asks the same."""
        words = [recordings.BINARY, "fleet", *(["report", self.folder] if report else ["ask", self.folder,
                                                                                      QUESTIONS[0]])]
        before = inventory(self.fleets.room)
        done = recordings.run([*words, "--format", "json", "--threads", "1"], SECONDS, env={
            **os.environ, "ACLTAPE_PYTHON": sys.executable, "ACLTAPE_PAGER": "", "NO_COLOR": "1"})
        wrong = campaign.what_is_wrong(done.code, done.out, done.err, SECONDS)
        if not wrong and b"Traceback" in done.err:
            wrong = "a traceback"
        refused = self.expected == fleet_damage.REFUSED
        if not wrong and (done.code != 0) != refused and not (done.code == 2 and self.expected == fleet_damage.VALUES):
            wrong = f"exit code {done.code}, where the damage is {self.expected}"
        if not wrong and done.code == 0 and not report:
            rows = json.loads(done.out)
            rows = rows["answer"] if isinstance(rows, dict) else rows
            told = [{name: str(cell) for name, cell in row.items()} for row in rows]
            # The head of another question may have left the part out since.
            answers = self.ended.said["returned"]["answers"][0]
            if told != [{name: str(cell) for name, cell in row.items()} for row in answers]:
                wrong = f"the command answers {told}, and the program got {answers}"
        if not wrong and fleet_damage.CANARY.encode() in done.out + done.err:
            wrong = "the content of another file is in an answer"
        if not wrong and inventory(self.fleets.room) != before:
            wrong = "the command changed files"
        return wrong and f"{' '.join(words[1:3])}: {wrong}: {done.err.decode('utf-8', 'replace')[:500]}"


def run(fleets, options):
    begin, seed, findings, commands = time.monotonic(), options.seed, 0, 0
    every = max(options.variants // options.commands, 1) if options.variants and options.commands else 25
    kinds, slowest, largest = collections.Counter(), 0.0, 0
    while seed < options.seed + options.variants or time.monotonic() - begin < 3600 * options.hours:
        one = Variant(fleets, seed)
        wrong = one.run()
        if not wrong and options.commands and (seed - options.seed) % every == 0:
            wrong = one.wrong_command(report=commands % 2 == 1)
            commands += 1
        if wrong:
            findings += 1
            print(f"FINDING variant {seed} ({one.kind}, rank {one.rank}): {wrong}\n"
                  f"  again: {sys.executable} {os.path.abspath(__file__)} --variant {seed}", flush=True)
        kinds[one.expected] += 1
        slowest, largest = max(slowest, one.ended.cpu_seconds), max(largest, one.ended.megabytes)
        seed += 1
    told = ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items()))
    print(f"{seed - options.seed} variants ({told}), {commands} commands, {findings} findings in "
          f"{time.monotonic() - begin:.0f} s; at most {slowest:.1f} s of processor time and {largest} MiB")
    return 1 if findings or seed == options.seed else 0


def one_alone(fleets, options):
    one = Variant(fleets, options.variant)
    if options.keep:
        one.damage()
        shutil.copytree(one.folder, options.keep, symlinks=True)
        print(f"{one.kind} in rank {one.rank}, expected: {one.expected}")
        return 0
    wrong = one.run()
    print(f"{one.kind} in rank {one.rank}, table {one.table}, expected: {one.expected}")
    print(json.dumps(one.ended._asdict(), indent=1))
    wrong = wrong or one.wrong_command(report=False) or one.wrong_command(report=True)
    print(wrong or "nothing is wrong")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", type=int, default=0)
    parser.add_argument("--commands", type=int, default=8, help="so many of the variants by the command too")
    parser.add_argument("--hours", type=float, default=0)
    parser.add_argument("--variant", type=int, help="this one alone")
    parser.add_argument("--keep", help="a new folder for the variant")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="acltape_fleets_") as room:
        # What the engine leaves in the folder of temporary files is noticed.
        tempfile.tempdir = os.environ["TMPDIR"] = os.path.join(room, TEMPORARY)
        os.mkdir(tempfile.tempdir)
        fleets = Fleets(room)
        return run(fleets, options) if options.variant is None else one_alone(fleets, options)


if __name__ == "__main__":
    sys.exit(main())
