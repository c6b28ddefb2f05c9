"""A folder of fleet tables, opened for questions."""
import contextlib

from acltape.fleet import sql
from acltape.fleet.duckdb_engine import DuckDb, QuestionError, Unreadable, reads_whole
from acltape.fleet.folder import Folder
from acltape.fleet.requirements import PACKAGES
from acltape.fleet.spark_engine import Session
from acltape.frames import package


def open(path, memory=None, threads=None, engine="duckdb", master=None):
    """Opens a folder of fleet tables. Raises FolderError if it is none.

    memory: the most that the engine holds ("2GB"), on each worker if it is a cluster; threads: how many work;
    engine: "duckdb" or "spark"; master: where Spark works, "local[*]" or "spark://HOST:PORT". Use it in a `with`.
    """
    return Fleet(path, memory, threads, engine, master)


class Fleet:
    def __init__(self, path, memory=None, threads=None, engine="duckdb", master=None):
        if engine not in PACKAGES:
            raise QuestionError(f"there is no engine '{engine}'; there are {', '.join(PACKAGES)}")
        if master is not None and engine != "spark":
            raise QuestionError("a master is of Spark; say engine='spark' too (--engine spark)")
        for name in PACKAGES[engine]:
            package(name)
        self.folder = Folder(path)
        self._memory, self._threads, self._master = memory, threads, master
        self._on_spark, self._session = engine == "spark", None
        self._known_texts, self._shared = [], None

    def close(self):
        """Ends the engine. A question after that starts it again."""
        session, self._session = self._session, None
        if session is not None:
            session.close()
        self._end_shared()

    @contextlib.contextmanager
    def together(self, texts):
        """For questions that are known before they are asked: what several of them read is worked out once.

        texts: these questions, or names of views and tables that they read. Others may be asked meanwhile.
        """
        self._known_texts = list(texts)
        try:
            yield
        finally:
            self._known_texts = []
            self._end_shared()

    def _end_shared(self):
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.close()

    @contextlib.contextmanager
    def _engine(self, text):
        """What answers a question."""
        if self._on_spark:
            if self._session is None:
                self._session = Session(self._master, self._memory, self._threads)
            yield self._session.engine(self.folder)
        elif self._known_texts and _names(text) <= _names("\n".join(self._known_texts)):
            if self._shared is None:
                self._shared = DuckDb(self.folder, self._known_texts, self._memory, self._threads)
            yield self._shared
        else:
            with contextlib.closing(DuckDb(self.folder, [text], self._memory, self._threads)) as alone:
                yield alone

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
        tables = sql.needed("\n".join([text, *self._known_texts]))[1]
        self.folder.judge(tables)
        while True:
            try:
                return self._ask(text, limit)
            except Unreadable as error:
                broken = getattr(error, "paths", None) or self._broken_files(tables)
                if not broken:
                    raise QuestionError(str(error)) from None
                self._end_shared()
                self.folder.leave_out_of(broken, "cannot be read whole")

    def _ask(self, text, limit):
        with self._engine(text) as engine:
            reader = engine.ask(text, limit)
            batches, rows = [], 0
            for batch in engine.read(reader):
                batches.append(batch.slice(0, limit - rows) if limit else batch)
                rows += batch.num_rows
                if limit and rows >= limit:
                    break
            return package("pyarrow").Table.from_batches(batches, schema=reader.schema)

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


def _names(text):
    """The views and tables that a question may read."""
    views, tables = sql.needed(text)
    return {*views, *tables}
