"""The programs whose recording is measured, and how one of them is started.

A program is a name and the arguments of bench/measured.py that run it. bench/recorder_overhead.py times
them, bench/recorder_breakdown.py says where their time goes.
"""
import contextlib
import json
import os
import select
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEASURED = os.path.join(ROOT, "bench", "measured.py")

# name and arguments of measured.py
PROGRAMS = {
    "add loop": ["loop"],
    "resnet18": ["resnet18.py", "--option=--batches", "--few=2", "--many=8"],
    "decoder": ["decoder.py", "--option=--tokens", "--few=32", "--many=128"],
    "mlp_train": ["mlp_train.py", "--option=--steps", "--few=10", "--many=110"],
    "bert_layer": ["bert_layer.py", "--option=--batches", "--few=4", "--many=28"],
}
NPU_PROGRAMS = {
    "decoder": ["decoder.py", "--option=--tokens", "--few=4", "--many=12", "--device=npu"],
    "decoder, graph": ["decoder.py", "--option=--tokens", "--few=4", "--many=24", "--device=npu", "--graph"],
    "npu_streams, graph": ["npu_streams.py", "--option=--steps", "--few=10", "--many=60"],
    "mlp_train": ["mlp_train.py", "--option=--steps", "--few=5", "--many=25", "--device=npu"],
}
# On the soft device with the profile host_only, where steps are short: runs are longer, so that what a run
# constructs does not hide them. The decoder's cache grows with that, to 4 MiB in the run with a graph. The
# loop on the CPU runs without the soft device, and is recorded at the level of PyTorch's operators alone.
HOST_ONLY_PROGRAMS = {
    "add loop": ["loop", "--device=npu", "--iterations=2000"],
    "decoder": ["decoder.py", "--option=--tokens", "--few=4", "--many=28", "--device=npu"],
    "mlp_train": ["mlp_train.py", "--option=--steps", "--few=5", "--many=45", "--device=npu"],
    "decoder, graph": ["decoder.py", "--option=--tokens", "--few=20", "--many=1020", "--device=npu",
                       "--graph"],
    "npu_streams, graph": ["npu_streams.py", "--option=--steps", "--few=10", "--many=810"],
    "add_ of 4 KiB, CPU": ["loop", "--in-place=4096", "--iterations=50000"],
}
# `none`, `digest`, `inputs` and `all` are payload policies, with the line of the user's code for each call, as
# it is without options. `no_lines` and `stacks` are --payload none with --stacks none and full, `closed` is a
# recording that never opens, and `device_times`, which only programs of a device have, is with --device-times.
RECORDED = {"no_lines": ["--payload", "none", "--stacks", "none"],
            "none": ["--payload", "none"],
            "stacks": ["--payload", "none", "--stacks", "full"],
            "digest": ["--payload", "digest"],
            "inputs": ["--payload", "inputs"],
            "all": ["--payload", "all"],
            "closed": ["--payload", "inputs", "--start-closed", "--keep-empty"],
            "device_times": ["--payload", "none", "--device-times"]}


def find_python(npu):
    """The interpreter of the programs: $ACLTAPE_TORCH2_PYTHON, or one that imports Debian's torch."""
    if npu:
        if "ACLTAPE_TORCH2_PYTHON" not in os.environ:
            sys.exit("ACLTAPE_TORCH2_PYTHON names no Python with torch_npu; scripts/torch2-python makes one")
        return os.environ["ACLTAPE_TORCH2_PYTHON"]
    for candidate in filter(None, [os.environ.get("ACLTAPE_PYTHON"), "python3", "/usr/bin/python3"]):
        try:
            if subprocess.run([candidate, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0:
                return candidate
        except OSError:
            continue
    sys.exit("no python3 imports torch; scripts/setup installs Debian's")


class ProgramEnded(Exception):
    """A measured program ended before it answered."""


class MeasuredProcess:
    """A program that measures when it is told to, unrecorded or recorded in one way.

    variant is "baseline", a key of RECORDED or an instrument of measured.py. The pipe and the trace lie in
    folder; end() removes the pipe and leaves the trace.
    """

    def __init__(self, acltape, python, arguments, variant, folder, seconds=0.1, options=()):
        soft = any("npu" in word for word in arguments)
        kind = arguments if arguments[0] == "loop" else [
            "workload", os.path.join(ROOT, "bench", "workloads", arguments[0]), *arguments[1:]]
        self.name = variant
        self.path = os.path.join(folder, variant + ".times")
        self.trace = os.path.join(folder, variant + ".db")
        os.mkfifo(self.path)
        command = [python, MEASURED, self.path, *kind, f"--seconds={seconds}", *options]
        environment = dict(os.environ)
        if not soft:  # torch_npu, where it is installed, needs the soft device's libraries
            environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        if variant in RECORDED:
            command = [acltape, "record", *(["--soft"] if soft else []), "--force", "--quiet",
                       *RECORDED[variant], "-o", self.trace, "--", *command]
        else:
            if variant != "baseline":
                command.append(f"--instrument={variant}")
            if soft:
                command = [acltape, "run", "--", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        text=True, env=environment)
        # Opened for both, so that a process that fails to start does not leave us waiting.
        self.pipe = open(os.open(self.path, os.O_RDWR))

    def turn(self, line="go"):
        """The times that the process answers a line of measured.py's standard input with."""
        print(line, file=self.process.stdin, flush=True)
        while not select.select([self.pipe], [], [], 1)[0]:
            if self.process.poll() is not None:
                raise ProgramEnded(f"{' '.join(self.process.args)} ended with {self.process.returncode}")
        return json.loads(self.pipe.readline())

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.pipe.close()
        os.unlink(self.path)
