"""Recordings of the programs: each is made once and kept in a folder."""
import os
import shlex
import subprocess
import sys

import tables

sys.path.insert(0, os.path.join(tables.SOURCE, "tests", "programs"))
import acl_programs  # noqa: E402

BINARY = os.environ.get("ACLTAPE_BINARY", os.path.join(tables.SOURCE, "build", "bin", "acltape"))
PYTHONS = {"torch2": os.environ.get("ACLTAPE_TORCH2_PYTHON"),
           "debian": os.environ.get("ACLTAPE_PYTHON") or "/usr/bin/python3"}
LONGEST = 280  # seconds


class RecordingFailed(Exception):
    """A program that could not be built, or whose recording failed. `is_new` is true the first time."""
    is_new = True


class Recordings:
    """Makes recordings when they are asked for; the folder keeps them."""

    def __init__(self, folder):
        self.folder = folder
        self.failed = {}

    def of(self, program, which="trace"):
        """Returns the file of a recording: "trace", "again" or "changed"."""
        name = f"{program.name}.{which}"
        path = os.path.join(self.folder, name + ".db")
        if name in self.failed:
            error = RecordingFailed(self.failed[name])
            error.is_new = False
            raise error
        if not os.path.exists(path):
            try:
                self.record(program, path, program.changed if which == "changed" else program.run)
            except RecordingFailed as error:
                self.failed[name] = str(error)
                raise
        return path

    def record(self, program, path, words):
        target = [self.built(program)] if program.is_compiled else [PYTHONS[program.python], program.source]
        soft = [] if program.device == "host" else ["--soft"]
        line = [BINARY, "record", *soft, "--level", program.levels, "--payload", program.payload, *program.record,
                "-o", path + ".new", "--force", "--", *target, *words[1:]]
        environment = {**os.environ, "PYTHONPATH": os.path.join(tables.SOURCE, "python")}
        if program.device == "host":
            environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        done = subprocess.run(line, capture_output=True, text=True, timeout=LONGEST, env=environment)
        if done.returncode != 0:
            raise RecordingFailed(f"$ {shlex.join(line)}\nexit code {done.returncode}\n{done.stdout[-2000:]}"
                                  f"{done.stderr[-2000:]}")
        os.replace(path + ".new", path)

    def built(self, program):
        """Compiles a program against the SDK with a plain compiler line."""
        binary = os.path.join(self.folder, os.path.splitext(program.run[0])[0])
        if not os.path.exists(binary):
            options = ["-I" + os.path.join(tables.SOURCE, part) for part in ("tests/programs", "recorder/ranges")]
            line = acl_programs.build_line(program.source, binary, options=options) + ["-ldl"]
            done = subprocess.run(line, capture_output=True, text=True, timeout=LONGEST)
            if done.returncode != 0:
                raise RecordingFailed(f"$ {shlex.join(line)}\n{done.stderr[-2000:]}")
        return binary
