"""Answers a question over a folder of fleet tables: `acltape fleet ask` runs this.

    python3 -m acltape.fleet.ask DIR QUESTION [--limit N] [--memory BYTES] [--threads N]
"""
import json
import sys

from acltape.fleet import lines


def main():
    parser = lines.parser_of_folder()
    parser.add_argument("question")
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()

    def answer():
        with lines.opened(options) as fleet:
            table = fleet.arrow(options.question, options.limit)
            lines.say_head(fleet)
        lines.say(columns=table.column_names)
        for batch in table.to_batches():
            for row in zip(*(column.to_pylist() for column in batch.columns)):
                print(json.dumps({"row": list(map(lines.cell, row))}))

    return lines.guarded(answer)


if __name__ == "__main__":
    sys.exit(main())
