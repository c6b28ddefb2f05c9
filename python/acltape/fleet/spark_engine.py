"""Asks Spark: on this machine, or on a cluster whose workers have the folder at the same path.

A process has one session of Spark, which takes seconds to start: a fleet keeps it, with the views that questions have
made, until it is closed. A question reads the files that were judged, and no other file or host; it writes nothing and
changes no setting.
"""
import logging
import os
import re
import shutil
import subprocess
import tempfile
import urllib.parse
import warnings

from acltape.fleet import sql
from acltape.fleet.duckdb_engine import QuestionError, Unreadable
from acltape.fleet.requirements import java, java_named
from acltape.fleet.tables import TABLES
from acltape.frames import Missing, package

# Spark warns of packages that it uses itself; what stands beside an answer is of the answer.
warnings.filterwarnings("ignore", module="pyspark")

_MASTER = re.compile(r"local(\[(\*|[1-9]\d*)\])?|spark://[^\s/]+:\d+")
_LEAST_MEMORY = 512  # MiB; with less Spark does not start
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# The parts of SQL that a question may have, as Spark's parser calls them. Others write, set or start programs.
_QUERY = frozenset("""Aggregate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LimitAll
    LocalLimit LocalRelation Offset OneRowRelation PipeOperator Pivot Project RepartitionByExpression Sample Sort
    SubqueryAlias Union UnresolvedHaving UnresolvedHint UnresolvedInlineTable UnresolvedQualify UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedTableValuedFunction UnresolvedTVFAliases UnresolvedWith Unpivot
    WithWindowDefinition""".split())
# Groups of functions that Spark has for a question. Those left out call Java, or read files that an argument names.
_GROUPS = frozenset(f"{name}_funcs" for name in """agg array bitwise collection conditional conversion csv datetime
    generator hash json lambda map math predicate sketch string struct url variant vector window""".split())
_FUNCTIONS = frozenset("monotonically_increasing_id range raise_error assert_true typeof uuid version".split())
# Views that others read more than once: their rows are kept, or each reading would be planned and done again.
_KEPT = frozenset(("collective", "device_time", "meeting", "op_mean"))
_SETTINGS = {
    "spark.app.name": "acltape fleet",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.eventLog.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # Neither files nor the environment are read by what stands in a question.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    # SQL means what it means to DuckDB.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Tables have partitions by rank, and views join a dozen of them: the subqueries that choose partitions are planned
    # inside of each other, twice as many with each join, which takes minutes and all memory.
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    # Recursive views end by themselves.
    "spark.sql.cteRecursionLevelLimit": "100000",
    "spark.sql.cteRecursionRowLimit": "-1",
}


def _mebibytes(memory):
    """A size such as "2GB", in MiB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", str(memory), re.IGNORECASE)
    if not found:
        raise QuestionError(f"'{memory}' is no size of memory; say it as 4GB")
    size = int(float(found[1]) * _UNITS[found[2].upper()]) >> 20
    if size < _LEAST_MEMORY:
        raise QuestionError(f"Spark needs {_LEAST_MEMORY} MiB at least, and not {memory}")
    return size


def settings(master, memory, threads, room):
    """The settings of a session. room: a folder for its temporary files."""
    if not _MASTER.fullmatch(master):
        raise QuestionError(f"'{master}' is no master of Spark; there are local[*], local[4] and spark://HOST:PORT")
    local = master.startswith("local")
    chosen = {**_SETTINGS, "spark.master": master, "spark.local.dir": room,
              "spark.sql.warehouse.dir": os.path.join(room, "warehouse"),
              "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={room} -Dderby.system.home={room}"}
    if local:
        count = str(threads or os.cpu_count()) if threads or not master.endswith("]") else master[6:-1]
        cores = os.cpu_count() if count == "*" else int(count)
        chosen.update({"spark.master": f"local[{cores}]", "spark.authenticate": "true",
                       "spark.sql.shuffle.partitions": str(max(2, cores))})
    elif threads:
        chosen["spark.cores.max"] = str(threads)
    if local or re.match(r"spark://(127\.|localhost)", master):
        chosen.update({"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"})
    if memory is not None:
        chosen["spark.driver.memory" if local else "spark.executor.memory"] = f"{_mebibytes(memory)}m"
    return chosen


def _look_for_java():
    if java() is None:
        raise Missing(f"Spark needs Java 17 or later, and {java_named()} is not there; install it by: "
                      "apt-get install default-jre-headless")


class Session:
    """Spark, started for one fleet, and the tables and views that its questions have needed so far."""

    def __init__(self, master=None, memory=None, threads=None):
        """Raises Missing without the package or Java, QuestionError if Spark does not start."""
        package("pyspark")
        logging.getLogger("SQLQueryContextLogger").disabled = True
        self._context = package("pyspark.core.context").SparkContext
        if self._context._active_spark_context is not None:
            raise QuestionError("this process has a session of Spark already; stop it first")
        _look_for_java()
        self._errors = package("pyspark.errors")
        self._py4j = package("py4j.protocol").Py4JError
        self._room = tempfile.mkdtemp(prefix="acltape_fleet_")
        self._gateway = self._spark = None
        try:
            self._start(settings(master or "local[*]", memory, threads, self._room))
        except BaseException:
            self.close()
            raise
        self._made, self._left_out = set(), 0

    def _start(self, chosen):
        conf = package("pyspark").SparkConf(loadDefaults=False).setAll(list(chosen.items()))
        log = os.path.join(self._room, "log")
        try:
            with open(log, "w") as said:
                self._gateway = package("pyspark.java_gateway").launch_gateway(
                    conf, {"stdout": subprocess.DEVNULL, "stderr": said})
            self._spark = package("pyspark.sql").SparkSession(self._context(gateway=self._gateway, conf=conf))
            self._forget_functions()
        except (self._errors.PySparkException, self._py4j, OSError) as error:
            with open(log, errors="replace") as said:
                lines = [line for line in said if "Exception" in line or "Error" in line or "rror:" in line]
            reason = sentence(lines[0] if lines else error)
            raise QuestionError(f"Spark does not start on {chosen['spark.master']}: {reason}") from None

    def _forget_functions(self):
        """Takes away the functions that a question must not call."""
        state = self._spark._jsparkSession.sessionState()
        for registry in (state.functionRegistry(), state.tableFunctionRegistry()):
            for name in _listed(registry.listFunction()):
                allowed = registry.lookupFunction(name).get().getGroup() in _GROUPS
                if not allowed and name.funcName() not in _FUNCTIONS:
                    registry.dropFunction(name)

    def close(self):
        spark, self._spark = self._spark, None
        gateway, self._gateway = self._gateway, None
        try:
            if spark is not None:
                spark.stop()
            if gateway is not None:
                gateway.shutdown()
        except (self._errors.PySparkException, self._py4j, OSError):
            pass  # It has ended already.
        finally:
            if gateway is not None:
                _end(gateway.proc)
                self._context._gateway = self._context._jvm = None
            shutil.rmtree(self._room, ignore_errors=True)

    def engine(self, folder):
        """What answers questions over the files of a folder."""
        return Spark(self, folder)

    def is_query(self, text):
        """True if a text is one query, with nothing inside of it that is more than that."""
        new = [self._spark._jsparkSession.sessionState().sqlParser().parsePlan(text)]
        while new:
            node = new.pop()
            if node.nodeName() not in _QUERY:
                return False
            for inside in (node.children(), node.innerChildren(), node.subqueries()):
                new += _listed(inside)
        return True

    def make(self, folder, text):
        """Makes the views that a text names, unless they are there and the folder's parts are the same."""
        if len(folder.left_out) != self._left_out:
            for name in self._made:
                self._spark.catalog.dropTempView(name)
            self._made, self._left_out = set(), len(folder.left_out)
        views, tables = sql.needed(text)
        for table in tables:
            self._once(table, lambda table=table: self._read(folder, table))
        for alias, table in sql.ALIASES.items():
            if table in tables:
                self._once(alias, lambda table=table: self._spark.table(table))
        self._once("part", lambda: self._given(sql.PART, [tuple(getattr(part, name) for name in sql.PART)
                                                          for part in folder.parts]))
        self._once("lacking", lambda: self._given(sql.LACKING, [(part.run, part.rank, line) for part in folder.parts
                                                                for line in part.lacks]))
        for view in views:
            self._once(view, lambda view=view: self._view(view))

    def _once(self, name, frame):
        if name not in self._made:
            frame().createOrReplaceTempView(name)
            self._made.add(name)

    def _view(self, view):
        frame = self._spark.sql(sql.VIEWS[view])
        return frame.localCheckpoint() if view in _KEPT else frame

    def _read(self, folder, table):
        """The rows of a table. Its columns are told to Spark, and `run` and `rank` are those of the paths."""
        columns = {**TABLES[table], **_PARTITIONS}
        kinds = ", ".join(f"`{name}` {_KINDS[kind]}" for name, kind in columns.items())
        groups = {}
        for file in folder.files(table):
            stepped = os.path.basename(os.path.dirname(file.path)).startswith("first_step=")
            groups.setdefault(stepped, []).append(file.path)
        rows = self._given({**_PARTITIONS, **TABLES[table]}, [])
        for paths in groups.values():
            read = (self._spark.read.schema(kinds).option("__globPaths__", "false")
                    .option("basePath", "file:" + os.path.join(folder.path, "data", table))
                    .parquet(*("file:" + path for path in paths)))
            _judge_paths(read, paths)
            rows = rows.union(read.select(rows.columns))
        return rows

    def _given(self, columns, rows):
        pyarrow = package("pyarrow")
        types = {"VARCHAR": pyarrow.string(), "BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64()}
        arrays = [pyarrow.array([row[place] for row in rows], type=types[kind])
                  for place, kind in enumerate(columns.values())]
        return self._spark.createDataFrame(pyarrow.table(arrays, names=list(columns)))

    def answer(self, text, limit):
        frame = self._spark.sql(text)
        return (frame.limit(limit) if limit else frame).toArrow()

    def judged(self, error, folder):
        """The exception that an error of Spark means for who asked."""
        if isinstance(error, (self._errors.AnalysisException, self._errors.ParseException)):
            return QuestionError(sentence(error))
        text = str(error)
        named = {file.path for part in folder.parts for files in part.files.values() for file in files
                 if os.path.relpath(file.path, folder.path) in text}
        return _unreadable(sentence(error), named)

    @property
    def errors(self):
        return self._errors.PySparkException, self._py4j, package("pyarrow").ArrowException


_PARTITIONS = {"run": "VARCHAR", "rank": "BIGINT"}
_KINDS = {"VARCHAR": "STRING", "BIGINT": "BIGINT", "DOUBLE": "DOUBLE"}


class Spark:
    """Questions over the files of a folder as it was judged."""

    def __init__(self, session, folder):
        self._session, self._folder = session, folder

    def ask(self, text, limit=0):
        """A reader of record batches. Raises QuestionError, or Unreadable where a file may be to blame."""
        try:
            if not self._session.is_query(text):
                raise QuestionError("a question is one SELECT; nothing is written, set, loaded or started")
            self._session.make(self._folder, text)
            return self._session.answer(text, limit).to_reader(1 << 16)
        except self._session.errors as error:
            raise self._session.judged(error, self._folder) from None

    def read(self, reader):
        """The batches of an answer."""
        yield from reader


def _unreadable(said, paths):
    unreadable = Unreadable(said)
    unreadable.paths = paths
    return unreadable


def _judge_paths(read, paths):
    """Raises Unreadable for files that Spark passes over: those that are gone, and those whose name begins with "_"."""
    found = {urllib.parse.unquote(urllib.parse.urlsplit(url).path) for url in read.inputFiles()}
    passed_over = set(paths) - found
    if passed_over:
        raise _unreadable("Spark does not find a file", passed_over)


def _listed(sequence):
    """The elements of a sequence of Scala."""
    steps, found = sequence.iterator(), []
    while steps.hasNext():
        found.append(steps.next())
    return found


def _end(process):
    """Waits for Spark's process, which ends when its input does."""
    if process is None:
        return
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def sentence(error):
    """What Spark says of an error, without the inside of Java."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if re.search(r"\[[A-Z_.0-9]{4,}\]", line)), lines[0] if lines else "")
    said = re.sub(r"^.*?\[[A-Z_.0-9]{4,}\]\s*", "", said)
    said = re.sub(r"\s*SQLSTATE: \w+;?\s*", " ", said)
    said = re.sub(r"\b(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error)): ", "", said).strip(" ;")
    return said[:600] or type(error).__name__
