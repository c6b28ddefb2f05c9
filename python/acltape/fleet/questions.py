"""Prepared questions: their answers in words, and the command that opens the place.

A file of questions/ begins with lines of comments:

    -- question: the question
    -- answer: a sentence about a row that is a finding; {column:format} is a cell of it
    -- none: the sentence where no row is one
    -- needs: VIEW: without rows in this view the question has no answer, and this says what there would have to be
    -- next: the words of a command; {column} is a cell

and is a SELECT. Its column `finding` is 1 in rows that are more than noise.
"""
import collections
import re
import shlex
import string

from acltape.fleet import sql
from acltape.fleet.folder import shown
from acltape.fleet.source_lines import READS, lines_of

Question = collections.namedtuple("Question", "name question answer none needs lacking next")
Answer = collections.namedtuple("Answer", "name question answer next")
_MOST_ANSWERS = 5  # of one question in a report


class _Cells(string.Formatter):
    """Puts the cells of a row into a sentence; a cell that is NULL is "?"."""

    def format_field(self, value, spec):
        if value is None:
            return "?"
        return super().format_field(shown(value) if isinstance(value, str) else value, spec)


def _parse(name):
    said = dict(re.findall(r"^-- (question|answer|none|needs|next): (.+)$", sql.QUESTIONS[name], re.MULTILINE))
    needs, _, lacking = said["needs"].partition(": ")
    return Question(name, said["question"], said["answer"], said["none"], needs, lacking, said["next"])


ALL = {name: _parse(name) for name in sql.QUESTIONS}


def texts():
    """What `answers` asks of a fleet for all questions, for Fleet.together."""
    return [*ALL, *(f"SELECT 1 FROM {question.needs}" for question in ALL.values()), READS]


def in_words(question, row):
    line = f" Its line is {shown(row['line'])}." if row.get("line") else ""
    return _Cells().format(question.answer, **row) + line


def command(question, row):
    """The command that opens what a row is about, empty if the row lacks what it names.

    Texts of a trace stay one word of the shell.
    """
    if any(row.get(column) is None for column in re.findall(r"{(\w+)", question.next)):
        return ""
    words = []
    for word in shlex.split(question.next):
        # In SQL a text stands between single quotes.
        in_sql = {key: value.replace("'", "''") if isinstance(value, str) else value for key, value in row.items()}
        words.append(_Cells().format(word, **(in_sql if " " in word else row)))
    return shlex.join(words)


def answers(fleet, name):
    """What a report says of a question: a few sentences, each with the command that opens its place."""
    question = ALL[name]
    if not fleet.arrow(f"SELECT 1 AS one FROM {question.needs} LIMIT 1").num_rows:
        return [Answer(name, question.question, f"Not known: this needs that {question.lacking}.", "")]
    findings = fleet.arrow(f"SELECT * FROM {name} WHERE finding = 1").to_pylist()
    if not findings:
        return [Answer(name, question.question, question.none, "")]
    told = findings[:_MOST_ANSWERS]
    lines = lines_of(fleet, [(row["run"], row["rank"], row.get("call_id")) for row in told if not row.get("line")])
    for row in told:
        row["line"] = row.get("line") or lines.get((row["run"], row["rank"], row.get("call_id")))
    told = [Answer(name, question.question, in_words(question, row), command(question, row)) for row in told]
    if len(findings) > _MOST_ANSWERS:
        told.append(Answer(name, question.question, f"{len(findings) - _MOST_ANSWERS} more rows are findings.", ""))
    return told
