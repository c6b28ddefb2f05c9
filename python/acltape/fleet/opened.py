"""A folder of fleet tables, opened for questions."""
from acltape.fleet import sql
from acltape.fleet.duckdb_engine import DuckDb, QuestionError, Unreadable, reads_whole
from acltape.fleet.folder import Folder
from acltape.frames import package


def open(path, memory=None, threads=None):
    """Opens a folder of fleet tables. Raises FolderError if it is none.

    memory: the most that DuckDB holds ("2GB"); threads: how many work. Use it in a `with`.
    """
    return Fleet(path, memory, threads)


class Fleet:
    def __init__(self, path, memory=None, threads=None):
        self.folder = Folder(path)
        self._memory, self._threads = memory, threads

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def head(self):
        """What the last answer leaves out and what its traces lack, in sentences."""
        return self.folder.head()

    def arrow(self, question, limit=0):
        """The answer as a pyarrow.Table. question: one SELECT, or the name of a view or table. limit: rows at most."""
        text = question if not question.isidentifier() else f"SELECT * FROM {self._known(question)}"
        self.folder.judge(sql.needed(text)[1])
        while True:
            try:
                return self._ask(text, limit)
            except Unreadable as error:
                broken = self._broken_files(sql.needed(text)[1])
                if not broken:
                    raise QuestionError(str(error)) from None
                self.folder.leave_out_of(broken, "cannot be read whole")

    def _ask(self, text, limit):
        engine = DuckDb(self.folder, text, self._memory, self._threads)
        try:
            reader = engine.ask()
            batches, rows = [], 0
            for batch in engine.read(reader):
                batches.append(batch.slice(0, limit - rows) if limit else batch)
                rows += batch.num_rows
                if limit and rows >= limit:
                    break
            return package("pyarrow").Table.from_batches(batches, schema=reader.schema)
        finally:
            engine.close()

    def _broken_files(self, tables):
        """Those of the files of tables that DuckDB cannot read whole."""
        return {file.path for table in tables for file in self.folder.files(table) if not reads_whole(file.path)}

    def pandas(self, question):
        """The answer as a pandas.DataFrame."""
        package("pandas")
        return self.arrow(question).to_pandas()

    def polars(self, question):
        """The answer as a polars.DataFrame."""
        return package("polars").from_arrow(self.arrow(question))

    def views(self):
        """The names of all views and tables."""
        return sorted({*sql.VIEWS, *sql.TABLES, "part", "lacking"})

    def _known(self, name):
        if name not in self.views():
            raise QuestionError(f"there is no view or table '{name}'; there are {', '.join(self.views())}")
        return name
