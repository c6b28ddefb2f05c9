"""Code that the campaigns over the recorder share: runs of `acltape record`, and what their traces hold."""
import collections
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.abspath(os.environ.get("ACLTAPE_BINARY", os.path.join(SOURCE, "build", "bin", "acltape")))
PROGRAMS = os.path.abspath(os.environ.get("ACLTAPE_CAMPAIGN_PROGRAMS",
                                          os.path.join(SOURCE, "build", "tests", "campaign")))

Run = collections.namedtuple("Run", "code out err seconds")


def program(name):
    return os.path.join(PROGRAMS, name)


class Folder:
    """A folder of its own for one run; `with` removes it."""

    def __init__(self, number):
        self.path = tempfile.mkdtemp(prefix=f"acltape_recording_{number}_")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def __call__(self, name):
        return os.path.join(self.path, name)


def waited(session):
    """Seconds for which threads of a session could have run and got no processor."""
    total = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(process)) != session:
                continue
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/schedstat") as file:
                    total += int(file.read().split()[1])
        except OSError:  # it has ended
            continue
    return total / 1e9


def run(words, seconds, **options):
    """Runs a command in a session of its own; no code when it had to be ended after `seconds`. What it
    waited for a processor on a busy machine does not count, up to ten times as long: a command that
    hangs waits for none."""
    begin = time.monotonic()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True, **options)
    code, end = None, begin + seconds
    while code is None:
        try:
            out, err = process.communicate(timeout=max(0.1, end - time.monotonic()))
            code = process.returncode
        except subprocess.TimeoutExpired:
            end = begin + seconds + min(waited(process.pid), 9 * seconds)
            if time.monotonic() < end:
                continue
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            break
    return Run(code, out, err, time.monotonic() - begin)


class Progress:
    """Says on standard error, once a minute, how far a campaign is."""

    def __init__(self):
        self.next = time.monotonic() + 60

    def at(self, name, runs, findings):
        if time.monotonic() >= self.next:
            self.next += 60
            print(f"{time.strftime('%H:%M')} at {name}: {runs} runs, {findings} findings", file=sys.stderr, flush=True)


def counts_in(path):
    """The numbers of 8 bytes in a file; none when it is not there."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        data = file.read()
    return [number for number, in struct.iter_unpack("<Q", data[:len(data) // 8 * 8])]


Held = collections.namedtuple("Held", "state calls losses damage")


def held_by(trace):
    """The contents of a trace, read without acltape, as SQLite opens it: its state, its leaves, the kinds of its
    rows of lost data, and what SQLite finds wrong with the file."""
    connection = sqlite3.connect(f"file:{trace}?mode=rw", uri=True)
    try:
        damage = connection.execute("PRAGMA integrity_check").fetchone()[0]
        state = connection.execute("SELECT value FROM meta WHERE key = 'state'").fetchone()
        calls = connection.execute("SELECT count(*) FROM call WHERE leaf").fetchone()[0]
        losses = [kind for kind, in connection.execute(
            "SELECT kind FROM ledger WHERE severity IN ('data_loss', 'error')")]
        return Held(state[0] if state else "none", calls, losses, "" if damage == "ok" else damage)
    except sqlite3.Error as error:
        return Held("none", 0, [], str(error))
    finally:
        connection.close()
