"""Runs the command of one test and adds a line to a file: name, seconds, seconds of processor time.

    launch.py FILE NAME COMMAND..

The processor time is that of the command and of all processes under it that were waited for. It ends as the
command does: with its exit code, or by its signal.
"""
import os
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
    line = f"{name}\t{time.monotonic() - start:.2f}\t{used.ru_utime + used.ru_stime:.2f}\n"
    with open(file, "a", encoding="utf-8") as out:
        out.write(line)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        import resource
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
