"""Writes every view of a trace as a parquet file: `acltape export TRACE --to parquet -o FOLDER` runs this.

    python3 -m acltape.to_parquet TRACE FOLDER [--force] [--process N]

Prints a line of JSON for each file. Exit code 2: the folder cannot be used; 3: the trace; 4: a package is missing, or
the disk is full.
"""
import argparse
import json
import sqlite3
import sys

from acltape import frames
from acltape.trace import Trace


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("folder")
    parser.add_argument("--force", action="store_true")
    options = parser.parse_args()
    try:
        frames.package("pyarrow.parquet")
        with Trace(options.trace) as trace:
            frames.judge_folder(options.folder, options.force)
            for row in trace.write_parquet(options.folder, force=True):
                print(json.dumps(row), flush=True)
        return 0
    except frames.Missing as error:
        code, said = 4, error
    except OSError as error:
        code, said = 4, error
    except ValueError as error:
        code, said = 2, error
    except sqlite3.DatabaseError as error:
        code, said = 3, f"'{options.trace}' cannot be read: {error}"
    print(str(said), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
