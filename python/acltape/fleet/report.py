"""Answers all prepared questions in words: `acltape fleet report` runs this, and with --list `acltape fleet questions`.

    python3 -m acltape.fleet.report DIR [--memory BYTES] [--threads N]
    python3 -m acltape.fleet.report --list
"""
import sys

from acltape.fleet import lines


def main():
    if sys.argv[1:] == ["--list"]:
        return lines.guarded(listed)
    options = lines.parser_of_folder().parse_args()

    def answer():
        from acltape.fleet import questions
        with lines.opened(options) as fleet:
            told = [row for name in questions.ALL for row in questions.answers(fleet, name)]
            lines.say_head(fleet)
        lines.say(columns=["name", "answer", "next"])
        for row in told:
            lines.say(row=[row.name, row.answer, row.next or None])

    return lines.guarded(answer)


def listed():
    from acltape.fleet import questions
    lines.say(columns=["name", "question", "needs that"])
    for question in questions.ALL.values():
        lines.say(row=[question.name, question.question, question.lacking])


if __name__ == "__main__":
    sys.exit(main())
