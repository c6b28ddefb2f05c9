"""Traces of many ranks and runs as tables in files, asked by an engine (docs/fleets.md).

    import acltape.fleet
    with acltape.fleet.open("DIR") as fleet:
        fleet.pandas("SELECT run, rank, sum(total_ns) FROM top_ops GROUP BY run, rank")

It needs the packages of `pip install "acltape[fleet]"`.
"""
from acltape.fleet.folder import Folder, FolderError
from acltape.fleet.opened import Fleet, open

__all__ = ["Fleet", "Folder", "FolderError", "open"]
