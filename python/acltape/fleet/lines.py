"""Programs that the command starts: they print lines of JSON, and end with a sentence where they cannot.

Exit code 2: the question or the folder cannot be used; 4: a package is missing, or the disk is full.
"""
import argparse
import json
import math
import sys

from acltape import frames


def cell(value):
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (str, int, float)):
        return int(value) if isinstance(value, bool) else value
    return str(value)


def say(**what):
    print(json.dumps(what), flush=True)


def say_head(fleet):
    """What the answer is not about."""
    for row in fleet.folder.left_out:
        say(left_out=row)
    for row in fleet.folder.lacking():
        say(lacking=row)


def parser_of_folder():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--master")
    return parser


def opened(options):
    """The folder that the options name."""
    from acltape.fleet.opened import open
    return open(options.folder, memory=f"{options.memory}B" if options.memory else None,
                threads=options.threads or None, engine=options.engine, master=options.master)


def guarded(answer):
    """Runs a function that prints an answer; the exit code."""
    try:
        answer()
        return 0
    except (frames.Missing, OSError) as error:
        code, said = 4, error
    except ValueError as error:
        code, said = 2, error
    print(str(said).replace("\n", " "), file=sys.stderr)
    return code
