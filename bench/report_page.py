#!/usr/bin/env python3
"""Measures the report page: how large it is, what making it costs, and how it feels in a browser.

    bench/report_page.py [TRACE...] [--calls 1000000] [--rounds 3]

Takes the traces given, or a synthetic one of so many calls. For each it prints the size of the page,
the seconds and the greatest memory of `acltape report`, the milliseconds until the page answers, those
of the first drawing of the timeline, and the frames per second while wheel and keys zoom and move the
timeline (median and the slowest 5 % of the frames). Needs chromium and chromium-driver.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "tests", "page"))
sys.dont_write_bytecode = True
import webdriver  # noqa: E402

BIN = os.path.dirname(os.environ.get("ACLTAPE_BINARY", os.path.join(SOURCE, "build", "bin", "acltape")))

# Times of frames until told to stop.
COUNT = """
window.frames_seen = [];
window.counting = true;
const see = time => { window.frames_seen.push(time); if (window.counting) requestAnimationFrame(see); };
requestAnimationFrame(see);
"""
# The time that drawing takes by itself, without waiting for the screen.
FIRST = """
const done = arguments[0], begin = performance.now();
document.querySelector('[data-section=timeline]').click();
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
"""


def make_page(trace, page):
    begin = time.monotonic()
    child = subprocess.Popen([os.path.join(BIN, "acltape"), "report", trace, "-o", page, "--force"],
                             stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"bench/report_page.py: acltape report {trace} failed")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(page):
    with webdriver.Browser(1600, 1000) as browser:
        browser.open("file://" + page)
        ready = float(browser.wait_for("return document.documentElement.dataset.ready", 120))
        first = browser.run_async(FIRST)
        x, y, width, height = browser.box("#timeline-canvas")
        browser.run(COUNT)
        # In to single calls, along the time, and out again, step by step.
        for _ in range(6):
            browser.wheel(x + width * 0.4, y + 200, -120, times=12)
            browser.keys("dddd")
        browser.keys("aaaaaaaa")
        for _ in range(6):
            browser.wheel(x + width * 0.6, y + 200, 120, times=12)
        times = browser.run("window.counting = false; return window.frames_seen")
        gaps = sorted(b - a for a, b in zip(times, times[1:]))
        search = browser.run_async("""
            const done = arguments[0], begin = performance.now();
            const input = document.querySelector('#search-text');
            input.value = 'op:*add*';
            input.form.requestSubmit();
            requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));""")
    return ready, first, 1000 / statistics.median(gaps), 1000 / gaps[int(len(gaps) * 0.95)], len(gaps), search


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*")
    parser.add_argument("--calls", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if webdriver.MISSING:
        sys.exit(f"bench/report_page.py: {webdriver.MISSING}")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="acltape_page_bench_") as folder:
        traces = options.traces
        if not traces:
            traces = [os.path.join(folder, "synthetic.db")]
            subprocess.run([os.path.join(BIN, "synthetic_trace_file"), traces[0], str(options.calls)],
                           check=True, stdout=subprocess.DEVNULL)
        print(f"{'trace':20} {'page':>9} {'seconds':>8} {'cpu s':>6} {'memory':>9} {'ready':>8} "
              f"{'timeline':>9} {'search':>8} {'frames/s':>9} {'slowest 5 %':>12} {'frames':>7}")
        for trace in traces:
            page = os.path.join(folder, "page.html")
            rounds = []
            for _ in range(options.rounds):
                made = make_page(trace, page)
                rounds.append((*made, *measure(page)))
            wall, cpu, memory, ready, first, frames, slow, count, search = map(statistics.median, zip(*rounds))
            print(f"{os.path.basename(trace):20} {os.path.getsize(page) / 2**20:5.1f} MiB {wall:8.2f} {cpu:6.2f} "
                  f"{memory:5.0f} MiB {ready:5.0f} ms {first:6.0f} ms {search:5.0f} ms {frames:9.0f} {slow:12.0f} "
                  f"{count:7.0f}")


if __name__ == "__main__":
    main()
