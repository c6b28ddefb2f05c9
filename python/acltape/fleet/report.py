"""Answers all prepared questions in words: `acltape fleet report` runs this, and with --list `acltape fleet questions`.

    python3 -m acltape.fleet.report DIR [--memory BYTES] [--threads N] [--output FILE]
    python3 -m acltape.fleet.report --list
"""
import sys

from acltape.fleet import lines


def main():
    if sys.argv[1:] == ["--list"]:
        return lines.guarded(listed)
    parser = lines.parser_of_folder()
    parser.add_argument("--output")
    options = parser.parse_args()

    def answer():
        from acltape.fleet import matrix, page, questions
        with lines.opened(options) as fleet, fleet.together(
                questions.texts() + (matrix.TEXTS if options.output else [])):
            if options.output:
                page.refuse(fleet, options.output)
            told = [row for name in questions.ALL for row in questions.answers(fleet, name)]
            if options.output:
                page.say(fleet, options.output, told)
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
