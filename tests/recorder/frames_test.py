#!/usr/bin/env python3
"""Frames read from the interpreter's memory are those that Python itself tells.

    frames_test.py PROBE            runs the check in every CPython that is found on this machine
    frames_test.py PROBE --here     runs it in this interpreter
"""
import ctypes
import glob
import itertools
import os
import shutil
import subprocess
import sys
import threading

TESTED = range(9, 14)  # minor versions whose layout is known


def told_by_python(frame):
    lines = []
    while frame is not None:
        lines.append((id(frame.f_code), frame.f_lineno))
        frame = frame.f_back
    return lines


class Probe:
    def __init__(self, path):
        self.with_lock, self.without_lock = ctypes.PyDLL(path), ctypes.CDLL(path)
        self.compared = 0

    def compare(self):
        frame = sys._getframe(1)
        told = told_by_python(frame)
        # This frame stands above them, at a line that differs between the two readings.
        codes = sorted({code for code, _ in told})
        array = (ctypes.c_size_t * len(codes))(*codes)
        text = ctypes.create_string_buffer(1 << 20)
        used = self.without_lock.acltape_frames(array, len(codes), text, ctypes.c_size_t(len(text)))
        assert used >= 0, "no frames could be read"
        read = [tuple(map(int, line.split())) for line in text.raw[:used].decode().splitlines()]
        assert read == told, f"\nPython: {told}\nread:   {read}"
        self.compared += 1


def check_here(path):
    probe = Probe(path)
    verdict = probe.with_lock.acltape_verify()
    if os.environ.get("ACLTAPE_PYTHON_LAYOUT") == "none":
        assert verdict == 0, f"a layout is used though none is wanted ({verdict})"
        print(f"{sys.version.split()[0]}: no layout on request")
        return
    if sys.version_info[1] not in TESTED:
        assert verdict != 1, "a layout that nobody tested counts as known"
        print(f"{sys.version.split()[0]}: not known, lines come from public functions")
        return
    assert verdict == 1, f"{sys.version}: the layout does not fit ({verdict})"

    def recursive(depth):
        if depth == 0:
            probe.compare()
        else:
            recursive(depth - 1)
        probe.compare()

    def generator():
        probe.compare()
        yield 1
        yield from (probe.compare() for _ in range(2))

    class Method:
        def __getattr__(self, name):
            probe.compare()
            return name

        def __call__(self):
            probe.compare()

    recursive(60)
    list(generator())
    [probe.compare() for _ in range(3)]
    sorted([2, 1], key=lambda _: probe.compare() or 0)  # called back from C
    Method().attribute
    Method()()
    exec(compile("\n\n\nprobe.compare()", "made.py", "exec"), {"probe": probe})
    try:
        raise ValueError
    except ValueError:
        probe.compare()
    with threading.Lock():
        probe.compare()
    threads = [threading.Thread(target=recursive, args=(20,)) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(f"{sys.version.split()[0]}: {probe.compared} stacks compared")


def interpreters():
    """One of each version and path, that has ctypes."""
    found = {}
    places = [*glob.glob("/usr/bin/python3.[0-9]*"), *glob.glob("/usr/local/bin/python3.[0-9]*"),
              *glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")),
              shutil.which("python3")]
    for place in filter(None, places):
        if place.endswith("-config"):
            continue
        name = subprocess.run([place, "-c", "import ctypes, sys; print(sys.version, sys.prefix)"],
                              capture_output=True, text=True)
        version = name.stdout.split(".")
        if name.returncode == 0 and int(version[1]) >= 9:
            found[name.stdout] = place
    return sorted(found.values())


def main():
    path = sys.argv[1]
    if "--here" in sys.argv:
        check_here(path)
        return
    failed = 0
    for place, layout in itertools.product(interpreters(), ("known", "none")):
        done = subprocess.run([place, "-B", os.path.abspath(__file__), path, "--here"],
                              capture_output=True, text=True,
                              env={**os.environ, "ACLTAPE_PYTHON_LAYOUT": layout})
        print(f"{place}: {done.stdout.strip() or done.stderr.strip()}")
        if done.returncode != 0:
            failed += 1
            print(f"again: {place} {__file__} {path} --here")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
