"""Traces of many ranks and runs as tables in files, asked by an engine (docs/fleets.md).

    import acltape.fleet
    acltape.fleet.add("DIR", ["night.rank0.db", "night.rank1.db"])
    with acltape.fleet.open("DIR") as fleet:
        fleet.pandas("SELECT run, rank, sum(total_ns) FROM top_ops GROUP BY run, rank")

It needs the packages of `pip install "acltape[fleet]"`.
"""
from acltape.fleet.add_traces import add
from acltape.fleet.columns import Failure
from acltape.fleet.folder import Folder, FolderError
from acltape.fleet.opened import Fleet, open

__all__ = ["Failure", "Fleet", "Folder", "FolderError", "add", "open"]
