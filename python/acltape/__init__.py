"""Marks ranges and steps of a Python program for acltape, and reads the traces that it writes.

In a program, recorded or not:

    import acltape
    for batch in batches:
        with acltape.step():
            with acltape.range("forward"):
                ...

    with acltape.window():           # under `acltape record --start-closed`: only this is recorded
        train(batch)

Steps that are marked so are the steps of the trace. In a program that is not recorded this does
nothing. Afterwards:

    trace = acltape.Trace("t.db")
    trace.calls(step=3)                      # leaves, with operator, times and line of source
    trace.query("SELECT * FROM top_ops")     # any SQL; the views are described in docs/schema.md

Both give a pandas.DataFrame where pandas is installed, else a list of dictionaries. Frames of a view or of any SQL:

    trace.pandas("top_ops")                  # polars(...) and arrow(...) give those of these packages
    list(trace.write_parquet("t.parquet"))   # a file for each view, as `acltape export --to parquet`
"""
from acltape.ranges import close_window, open_window, range, recorded, step, window
from acltape.trace import Trace

__all__ = ["Trace", "close_window", "open_window", "range", "recorded", "step", "window"]
