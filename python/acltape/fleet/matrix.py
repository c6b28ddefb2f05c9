"""What each rank did in each step, asked of an engine: the figures of the page of a fleet.

A run is a matrix of ranks and columns. A column is a step, or several steps that follow each other where a run has more
cells than a page holds; such a cell has the greatest figure of its steps.
"""
import collections
import math

from acltape.fleet import sql

MOST_CELLS = 1000000  # of all runs together
UNKNOWN = -1  # in a column of figures
_MOST_NUMBER = (1 << 53) - 1  # whole numbers that a browser has

_WALL = "SELECT run, rank, step, wall_ns AS wall FROM step_summary WHERE wall_ns IS NOT NULL"

# Waits compare no clocks, as the view `meeting` says. They are known in steps of which each collective has times of the
# device on all ranks: a call on the host returns before the device waits.
_WAITS = """
WITH met AS (
  SELECT run, rank, step, waited_ns,
    max(clock) OVER (PARTITION BY run, communicator, number) AS clock,
    sum(waited_ns) OVER (PARTITION BY run, communicator, number) AS caused_ns,
    row_number() OVER (PARTITION BY run, communicator, number ORDER BY inside_ns, rank) AS place
  FROM meeting)
SELECT run, rank, step, CAST(sum(waited_ns) AS DOUBLE) AS waits,
  CAST(sum(CASE WHEN place = 1 THEN caused_ns ELSE 0 END) AS DOUBLE) AS caused
FROM met WHERE step IS NOT NULL GROUP BY run, rank, step HAVING max(clock) = 'device'"""

# Bytes alive on the devices of a rank, or on the host where it uses none. A step begins and ends as its calls do; these
# moments stand among the changes, so that what is alive when a step begins counts for it.
_MEMORY = """
WITH changes AS (
  SELECT run, rank, CASE WHEN (coalesce(flags, 0) >> 8) > 0 THEN 1 ELSE 0 END AS on_device, alloc_ns AS moment,
    bytes AS change
  FROM buffer_row WHERE alloc_ns IS NOT NULL AND block IS NULL
  UNION ALL
  SELECT run, rank, CASE WHEN (coalesce(flags, 0) >> 8) > 0 THEN 1 ELSE 0 END, alloc_ns + life_ns, -bytes
  FROM buffer_row WHERE alloc_ns IS NOT NULL AND life_ns IS NOT NULL AND block IS NULL),
used AS (SELECT run, rank, max(on_device) AS on_device FROM changes GROUP BY run, rank),
spans AS (
  SELECT s.run, s.rank, s.step, c.begin_ns, c.begin_ns + s.wall_ns AS end_ns,
    row_number() OVER (PARTITION BY s.run, s.rank ORDER BY c.begin_ns, s.step) AS number
  FROM step_summary s
  JOIN call_row c ON c.run = s.run AND c.rank = s.rank AND c.call_id = s.first_call
  WHERE s.wall_ns IS NOT NULL),
moments AS (
  SELECT c.run, c.rank, c.moment, c.change, 0 AS begins, 0 AS ends
  FROM changes c JOIN used u ON u.run = c.run AND u.rank = c.rank AND u.on_device = c.on_device
  UNION ALL
  SELECT s.run, s.rank, s.begin_ns, 0, 1, 0 FROM spans s JOIN used u ON u.run = s.run AND u.rank = s.rank
  UNION ALL
  SELECT s.run, s.rank, s.end_ns + 1, 0, 0, 1 FROM spans s JOIN used u ON u.run = s.run AND u.rank = s.rank),
alive AS (
  SELECT run, rank, sum(change) OVER (PARTITION BY run, rank ORDER BY moment) AS bytes,
    sum(begins) OVER (PARTITION BY run, rank ORDER BY moment) AS begun,
    sum(ends) OVER (PARTITION BY run, rank ORDER BY moment) AS ended
  FROM moments)
SELECT s.run, s.rank, s.step, CAST(max(a.bytes) AS DOUBLE) AS memory
FROM alive a JOIN spans s ON s.run = a.run AND s.rank = a.rank AND s.number = a.begun
WHERE a.begun > a.ended GROUP BY s.run, s.rank, s.step"""

# The questions, with the figures that each answers.
SOURCES = ((_WALL, ("wall",)), (_WAITS, ("waits", "caused")), (_MEMORY, ("memory",)))

# What `runs` and `figures` ask, for Fleet.together.
TEXTS = ["step", *(source for source, _ in SOURCES)]

# A run: its parts, its steps, and how many steps a column has.
Run = collections.namedtuple("Run", "name parts steps each")
# A figure of a run: `values` of each column of each rank, in units; `sums` of each rank, None where it is not known.
Figure = collections.namedtuple("Figure", "run name unit values sums")

_PLACED = """
SELECT f.run, f.rank, CAST(floor(p.place / k.each) AS BIGINT) AS place, {figures}
FROM ({source}) f
JOIN (SELECT run, step, row_number() OVER (PARTITION BY run ORDER BY step) - 1 AS place
  FROM (SELECT DISTINCT run, step FROM step) known) p ON p.run = f.run AND p.step = f.step
JOIN ({folds}) k ON k.run = f.run
GROUP BY f.run, f.rank, CAST(floor(p.place / k.each) AS BIGINT)"""


def runs(fleet):
    """The runs of a fleet in the order of their names."""
    steps = collections.defaultdict(list)
    table = fleet.arrow("SELECT DISTINCT run, step FROM step ORDER BY run, step")
    for run, step in zip(table["run"].to_pylist(), table["step"].to_pylist()):
        steps[run].append(step)
    parts = collections.defaultdict(list)
    for part in fleet.folder.parts:
        parts[part.run].append(part)
    # Each run has an equal share of the page.
    most = MOST_CELLS // max(len(parts), 1)
    return [Run(name, of_run, steps[name], max(1, math.ceil(len(of_run) * len(steps[name]) / most)))
            for name, of_run in sorted(parts.items())]


def columns_of(run):
    """How many columns the matrix of a run has."""
    return math.ceil(len(run.steps) / run.each)


def figures(fleet, of_runs):
    """Yields each figure of each run."""
    listed = ", ".join(f"({sql.literal(run.name)}, {run.each})" for run in of_runs)
    folds = f"SELECT run, each FROM (VALUES {listed}) given(run, each)"
    for source, names in SOURCES if of_runs else ():
        listed = ", ".join(f"max(CAST(f.{name} AS DOUBLE)) AS {name}, sum(CAST(f.{name} AS DOUBLE)) AS {name}_sum"
                           for name in names)
        table = fleet.arrow(_PLACED.format(figures=listed, source=source, folds=folds))
        keys = [table[name].to_pylist() for name in ("run", "rank", "place")]
        for name in names:
            yield from _placed(of_runs, name, *keys, table[name].to_pylist(), table[name + "_sum"].to_pylist())


def _placed(of_runs, name, run_of, rank_of, place_of, values, sums):
    """The figure of each run, of the rows that an engine answered."""
    found = {}
    for run in of_runs:
        ranks = {part.rank: place for place, part in enumerate(run.parts)}
        found[run.name] = ranks, [UNKNOWN] * (len(ranks) * columns_of(run)), [None] * len(ranks)
    for run, rank, place, value, total in zip(run_of, rank_of, place_of, values, sums):
        ranks, cells, totals = found[run]
        # A part may have been left out since the runs were listed.
        row = ranks.get(rank)
        if row is None or value is None or not 0 <= value <= _MOST_NUMBER:
            continue
        # Neighbours in a column are alike, which makes the page small.
        cells[place * len(ranks) + row] = value
        totals[row] = (totals[row] or 0) + total
    for run in of_runs:
        _, cells, totals = found[run.name]
        unit = unit_of([value for value in cells if value > 0])
        yield Figure(run, name, unit, [value if value == UNKNOWN else round(value / unit) for value in cells], totals)


def unit_of(values):
    """A power of ten in which the median value has four digits: a page shows three of them."""
    if not values:
        return 1
    values.sort()
    return 10 ** max(0, math.floor(math.log10(values[len(values) // 2])) - 3)
