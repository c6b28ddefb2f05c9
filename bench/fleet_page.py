#!/usr/bin/env python3
"""Measures the page of a fleet: how large it is, what making it costs, and how it feels in a browser.

    bench/fleet_page.py [--ranks 4096] [--steps 100] [--folder DIR]

Makes fleet tables of a training that never ran, of which three ranks have faults, or takes those that are in DIR. It
prints the seconds of `acltape fleet report -o`, its processor time and greatest memory, the size of the page, the
milliseconds until the page answers, those of the first drawing of the matrix and of another figure, and the frames per
second while the wheel zooms. Needs chromium and chromium-driver, and the packages of tests/fleet/packages.py.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(SOURCE, "tests", name) for name in ("fleet", "page")]
sys.dont_write_bytecode = True
import packages  # noqa: E402

packages.enter()
import made_fleet  # noqa: E402
import slow_writer  # noqa: E402
import webdriver  # noqa: E402
from harness import BINARY  # noqa: E402

RUN = "night"
# Ranks of which files are copied; each rank has its own times of steps and of the device.
KINDS = 32
OWN = ("communicator", "signature_argument", "step_total", "device_span")
FAULTS = {17: {"slow_op": (17, "aclnnMatmul", 1.4)}, 40: {"more_memory": 40}, 99: {"without_graphs": 99}}

FIRST = """
const done = arguments[arguments.length - 1], begin = performance.now();
document.querySelector(arguments[0]).click();
const script = performance.now() - begin;
requestAnimationFrame(() => requestAnimationFrame(() => done([script, performance.now() - begin])));
"""
COUNT = """
window.frames_seen = [];
window.counting = true;
const see = time => { window.frames_seen.push(time); if (window.counting) requestAnimationFrame(see); };
requestAnimationFrame(see);
"""


def rows_of(rank, ranks, steps, **planted):
    return made_fleet._Rank(RUN, rank, ranks, steps, made_fleet.Faults(**planted), 0).rows


def make_fleet(folder, ranks, steps):
    """A folder of so many ranks. Writing all their rows by themselves would take an hour."""
    kinds = [rows_of(rank, KINDS, steps) for rank in range(KINDS)]
    files = {}  # by kind and table: what the manifest says of the file, and where it is
    for rank in range(ranks):
        planted = FAULTS.get(rank)
        kind = rank if planted else f"kind{rank % KINDS}"
        rows = rows_of(rank, ranks, steps, **planted) if planted else kinds[rank % KINDS]
        chance = random.Random(rank)
        own = {
            "communicator": [(1, 1, 5, "world", rank, ranks)],
            "signature_argument": [
                (*row[:7], (rank + {"destRank": 1, "srcRank": -1}[row[2]]) % ranks, *row[8:])
                if row[2] in ("destRank", "srcRank") else row for row in rows["signature_argument"]],
            "step_total": [(*row[:5], int(row[5] * chance.gauss(1, 0.01)), *row[6:]) for row in rows["step_total"]],
            "device_span": [(*row[:3], row[3] + chance.randrange(9000), row[4]) for row in rows["device_span"]],
        }
        hashed = f"{rank:012}"
        tables = {}
        for table in slow_writer.TABLES:
            if table in OWN or (kind, table) not in files:
                said = slow_writer.write_table(folder, table, own.get(table, rows.get(table, [])), RUN, rank, hashed)
                files.setdefault((kind, table), said)
            else:
                said = copied(folder, files[kind, table], rank)
            tables[table] = said
        manifest = {"format": 1, "run": RUN, "rank": rank, "world_size": ranks, "hash": hashed, "lacks": [],
                    "label": "decoder" if rank % 4 == 3 else "encoder", "host": f"node{rank // 8}", "tables": tables,
                    "trace": {"path": f"/traces/{RUN}.rank{rank}.db"}}
        os.makedirs(os.path.join(folder, "manifest"), exist_ok=True)
        with open(os.path.join(folder, "manifest", f"{RUN}.{rank}.json"), "w") as file:
            json.dump(manifest, file)
    with open(os.path.join(folder, "acltape_fleet.json"), "w") as file:
        json.dump({"format": 1, "tables": 1}, file)


def copied(folder, said, rank):
    """The same file as that of another rank, under a name of this one."""
    entries = []
    for entry in said["files"]:
        words = entry["path"].split("/")
        words[3] = f"rank={rank}"
        path = "/".join(words)
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        os.link(os.path.join(folder, entry["path"]), os.path.join(folder, path))
        entries.append({**entry, "path": path})
    return {**said, "files": entries}


def make_page(folder, page):
    begin = time.monotonic()
    child = subprocess.Popen([BINARY, "fleet", "report", folder, "-o", page, "--force"], stdout=subprocess.DEVNULL,
                             env={**os.environ, "ACLTAPE_PYTHON": sys.executable})
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit("bench/fleet_page.py: acltape fleet report failed")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(page, picture=None):
    with webdriver.Browser(1600, 1000) as browser:
        browser.open("file://" + page)
        ready = float(browser.wait_for("return document.documentElement.dataset.ready", 120))
        first = browser.run_async(FIRST, "[data-section=matrix]")
        if picture:
            browser.screenshot(picture)
        figure = browser.run_async(FIRST, ".toolbar .choice button:nth-child(2)")
        x, y, width, height = browser.box("#matrix-canvas")
        browser.run(COUNT)
        for _ in range(4):
            browser.wheel(x + width * 0.4, y + height * 0.5, -120, times=12)
        for _ in range(4):
            browser.wheel(x + width * 0.6, y + height * 0.5, 120, times=12)
        times = browser.run("window.counting = false; return window.frames_seen")
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    return ready, first, figure, 1000 / statistics.median(gaps), 1000 / gaps[int(len(gaps) * 0.95)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--folder", help="where the fleet is, or is made and stays")
    options = parser.parse_args()
    if webdriver.MISSING:
        sys.exit(f"bench/fleet_page.py: {webdriver.MISSING}")
    room = tempfile.mkdtemp(prefix="acltape_fleet_page_")
    try:
        folder = options.folder or os.path.join(room, "fleet")
        if not os.path.exists(folder):
            begin = time.monotonic()
            os.makedirs(folder)
            make_fleet(folder, options.ranks, options.steps)
            print(f"made {options.ranks} ranks of {options.steps} steps in {time.monotonic() - begin:.0f} s")
        page = os.path.join(room, "fleet.html")
        seconds, cpu, memory = make_page(folder, page)
        with open(page, "rb") as file:
            text = file.read()
        print(f"fleet report: {seconds:.1f} s, {cpu:.1f} s of processor time, {memory:.0f} MiB at most")
        print(f"page: {len(text) / 2**20:.2f} MiB, {len(zlib.compress(text)) / 2**20:.2f} MiB compressed")
        ready, first, figure, frames, slow = measure(page)
        print(f"ready {ready:.0f} ms; matrix {first[0]:.0f} ms of script, drawn after {first[1]:.0f} ms; another "
              f"figure {figure[0]:.0f} ms of script; zooming {frames:.0f} frames/s, slowest 5 % {slow:.0f}")
    finally:
        shutil.rmtree(room)


if __name__ == "__main__":
    main()
