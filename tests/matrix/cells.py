"""One cell of the matrix: a command on the recording of a program, in a folder of its own."""
import dataclasses
import os
import shutil
import shlex
import signal
import sqlite3
import subprocess
import tempfile
import time

from recordings import BINARY, RecordingFailed

NEXT_CODES = (0, 1)  # a command that another one proposes ends with one of these


@dataclasses.dataclass
class Result:
    """What a command printed, and how it ended. The code is None when its time was over."""
    words: tuple
    code: int | None
    out: str
    err: str
    seconds: float

    def __str__(self):
        return f"$ acltape {shlex.join(self.words)}\nexit code {self.code}\n{self.out[-1500:]}{self.err[-1500:]}"


@dataclasses.dataclass
class Failure:
    """A check that failed: its kind in few words, what was seen, and the command that shows it."""
    program: str
    command: str
    kind: str
    seen: str
    line: str

    def __str__(self):
        return f"{self.program} x {self.command}: {self.kind}: {self.seen}\n    {self.line}"


def run(words, folder, seconds):
    """Runs acltape in a folder and ends it with all its processes when its time is over."""
    begin = time.monotonic()
    child = subprocess.Popen([BINARY, *words], cwd=folder, text=True, errors="replace", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = child.communicate(timeout=seconds)
        code = child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        code = None
    return Result(tuple(words), code, out, err, time.monotonic() - begin)


class Cell:
    """A command on a program. `folder` has a fresh copy of the trace as t.db, and what the command wrote."""

    def __init__(self, program, command, recordings):
        self.program, self.command, self.recordings = program, command, recordings
        self.failures, self.applied, self.seconds = [], False, 0.0

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="acltape_matrix_")
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def fail(self, kind, seen):
        line = " && ".join(f"acltape {shlex.join(words)}" for words in (*self.befores, self.words))
        seen = " ".join(str(seen).split())[:400]
        self.failures.append(Failure(self.program.name, self.command.name, kind, seen, line))

    def filled(self, words):
        """The words of a command with what the places in them stand for."""
        known = {"{trace}": "t.db", "{again}": "again.db", "{changed}": "changed.db"}
        for place, name in known.items():
            if any(place in word for word in words):
                which = place.strip("{}")
                if not os.path.exists(self.path(name)):
                    shutil.copyfile(self.recordings.of(self.program, which), self.path(name))
        if any("{process}" in word for word in words):
            known["{process}"] = str(self.ask("SELECT min(t.process_id) FROM thread t JOIN call c USING (thread_id) "
                                              "WHERE c.leaf = 1")[0][0])
        if any("{line}" in word for word in words):
            found = self.ask("SELECT l.file, l.line FROM call_location l JOIN call c USING (call_id) WHERE c.leaf = 1 "
                             "GROUP BY 1, 2 ORDER BY count(c.step) DESC, count(*) DESC LIMIT 1")
            known["{line}"] = "{}:{}".format(*found[0]) if found else "nothing.py:1"
        for place, text in known.items():
            words = [word.replace(place, text) for word in words]
        return words

    def ask(self, sql, name="t.db"):
        """The rows of a query over a file of the folder."""
        connection = sqlite3.connect(f"file:{self.path(name)}?mode=ro", uri=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def run(self, words, seconds=60):
        return run(words, self.folder, seconds)

    def carry_out(self, checks):
        """Runs the cell and collects what fails. `checks` gives the functions by their names."""
        self.befores, self.words = (), ()
        try:
            befores = [tuple(self.filled(list(words))) for words in self.command.before]
            words = self.filled(list(self.command.words))
        except RecordingFailed as error:
            if error.is_new:
                self.fail("recording", error)
            return self
        for before in befores:
            done = self.run(before, self.command.seconds)
            if done.code != 0:
                return self
        self.befores, self.words = befores, words
        self.applied = True
        self.result = self.run(words, self.command.seconds)
        self.seconds = self.result.seconds
        for check in (*checks["every"], *(checks[name] for name in self.command.checks)):
            check(self)
        return self
