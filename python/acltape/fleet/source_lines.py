"""The lines of the program that made calls: of the call itself, or of the nearest call around it that has a stack.

An operator of the device lies in the operator of PyTorch that launched it, and that one has the stack. Work of a
backward pass has the line of the forward operator whose gradient it computes.
"""
from acltape.fleet import sql

READS = "call_row call_extra call_line"  # tables and views
_MOST_AROUND = 64  # calls around one


def lines_of(fleet, calls):
    """By call: its line as "train.py:12". Calls that nothing is known of are missing.

    calls: triples of run, rank and call_id.
    """
    found = {}
    asked = {call: call for call in calls if None not in call}  # by call: the one around it that is looked at
    for _ in range(_MOST_AROUND):
        if not asked:
            break
        around = {(row["run"], row["rank"], row["call_id"]): row for row in _rows(fleet, set(asked.values()))}
        following = {}
        for call, place in asked.items():
            row = around.get(place, {})
            outer = row.get("forward_call") or row.get("parent_id")
            if row.get("line") is not None:
                found[call] = row["line"]
            elif outer is not None and (*place[:2], outer) != place:
                following[call] = (*place[:2], outer)
        asked = following
    return found


def _rows(fleet, places):
    ranks = {}
    for run, rank, call in places:
        ranks.setdefault((run, rank), []).append(call)
    wanted = " OR ".join(
        f"(c.run = {sql.literal(run)} AND c.rank = {rank} AND c.call_id IN ({', '.join(map(str, calls))}))"
        for (run, rank), calls in ranks.items())
    return fleet.arrow(
        "SELECT c.run, c.rank, c.call_id, c.parent_id, x.forward_call, n.line FROM call_row c "
        "LEFT JOIN call_extra x ON x.run = c.run AND x.rank = c.rank AND x.call_id = c.call_id "
        "LEFT JOIN call_line n ON n.run = c.run AND n.rank = c.rank AND n.call_id = c.call_id "
        f"WHERE {wanted}").to_pylist()
