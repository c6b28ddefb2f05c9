"""Runs the command of one test and adds a line to a file: name, seconds, seconds of processor time, exit code.

    launch.py FILE NAME COMMAND..

The processor time is that of the command and of all processes under it that were waited for. This ends as the
command does: with its exit code, or by its signal, whose number the line has with a minus.
"""
import os
import resource
import signal
import sys
import time


def main():
    file, name, *command = sys.argv[1:]
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            os.execvp(command[0], command)
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
            os._exit(127)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with open(file, "a", encoding="utf-8") as out:
        out.write(f"{name}\t{time.monotonic() - start:.2f}\t{used.ru_utime + used.ru_stime:.2f}\t{code}\n")
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
