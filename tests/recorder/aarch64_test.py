#!/usr/bin/env python3
"""The libraries that are preloaded into recorded programs compile for aarch64 without a warning and
link. Ascend hosts often have that processor. Skipped (77) without the cross compiler, which
scripts/setup installs.

usage: aarch64_test.py SOURCE_DIRECTORY BUILD_DIRECTORY SOURCES...
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

COMPILER = shutil.which("aarch64-linux-gnu-g++")
FLAGS = ["-std=c++20", "-O1", "-fno-math-errno", "-fPIC", "-fno-exceptions", "-fno-rtti",
         "-fno-threadsafe-statics", "-Wall",
         "-Wextra", "-Werror", "-Wno-missing-field-initializers"]


def main():
    if COMPILER is None:
        print("no aarch64-linux-gnu-g++; scripts/setup installs it")
        return 77
    source, build, *files = sys.argv[1:]
    includes = ["-I", source, "-I", build, "-I", os.path.join(build, "sdk", "include"),
                "-idirafter", "/usr/include"]  # headers that are the same everywhere (xxhash.h)
    with tempfile.TemporaryDirectory() as folder:
        def compile_one(index_and_file):
            index, file = index_and_file
            output = os.path.join(folder, f"{index}.o")
            command = [COMPILER, *FLAGS, *includes, "-c", file, "-o", output]
            return command, output, subprocess.run(command, capture_output=True, text=True)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(compile_one, enumerate(files)))
        for command, _, done in results:
            if done.returncode != 0:
                print("$", " ".join(command), "\n" + done.stderr)
                return 1
        link = [shutil.which("aarch64-linux-gnu-gcc"), "-shared", "-Wl,--no-undefined", "-o",
                os.path.join(folder, "agent.so"), *[output for _, output, _ in results],
                "-lpthread", "-ldl"]
        done = subprocess.run(link, capture_output=True, text=True)
        print(done.stderr, end="")
        print(f"{len(files)} sources compiled and linked for aarch64" if done.returncode == 0 else "")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
