"""Answers a question over a folder of fleet tables: `acltape fleet ask` runs this.

    python3 -m acltape.fleet.ask DIR QUESTION [--limit N] [--memory BYTES] [--threads N]

Prints lines of JSON: what was left out, what is lacking, the columns, the rows. Exit code 2: the question or the
folder cannot be used; 4: a package is missing, or the disk is full.
"""
import argparse
import json
import math
import sys

from acltape import frames


def _cell(value):
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (str, int, float)):
        return int(value) if isinstance(value, bool) else value
    return str(value)


def _say(**what):
    print(json.dumps(what), flush=True)


def _answer(options):
    from acltape.fleet.opened import open
    with open(options.folder, memory=f"{options.memory}B" if options.memory else None,
              threads=options.threads or None) as fleet:
        answer = fleet.arrow(options.question, options.limit)
        for row in fleet.folder.left_out:
            _say(left_out=row)
        for row in fleet.folder.lacking():
            _say(lacking=row)
    _say(columns=answer.column_names)
    for batch in answer.to_batches():
        for row in zip(*(column.to_pylist() for column in batch.columns)):
            print(json.dumps({"row": list(map(_cell, row))}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("question")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    try:
        for name in ("pyarrow.parquet", "duckdb"):
            frames.package(name)
        _answer(options)
        return 0
    except (frames.Missing, OSError) as error:
        code, said = 4, error
    except ValueError as error:
        code, said = 2, error
    print(str(said).replace("\n", " "), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
