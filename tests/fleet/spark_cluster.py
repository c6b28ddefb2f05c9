"""A cluster of Spark on this machine: a master and two workers with a core each, on the loopback alone."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import time

import pyspark

HOME = os.path.dirname(pyspark.__file__)
# A worker takes an installation by pip for one that is not built, unless it is told the version of Scala.
SCALA = re.search(r"spark-core_([\d.]+)-", glob.glob(os.path.join(glob.escape(HOME), "jars", "spark-core_*"))[0])[1]
SECONDS = 120  # until it is there


class Cluster:
    """Use it in a `with`. `url` is its master."""

    def __enter__(self):
        self._room = tempfile.mkdtemp(prefix="acltape_cluster_")
        self._started = []
        try:
            log = self._start("master", "org.apache.spark.deploy.master.Master")
            self.url = self._said(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
            logs = [self._start(name, "org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g",
                                "--work-dir", os.path.join(self._room, "work of " + name), self.url)
                    for name in ("one", "two")]
            for log in logs:
                self._said(log, r"(Successfully registered with master)")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self._started):
            process.terminate()
        for process in self._started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._room, ignore_errors=True)

    def _start(self, name, what, *words):
        """The log of a process that is started."""
        log = os.path.join(self._room, name)
        with open(log, "w") as said:
            self._started.append(subprocess.Popen(
                ["java", "-cp", os.path.join(HOME, "jars", "*"), "-Xmx256m", what, "--host", "127.0.0.1", "--port", "0",
                 "--webui-port", "0", *words],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, cwd=self._room,
                env={**os.environ, "SPARK_HOME": HOME, "SPARK_SCALA_VERSION": SCALA, "SPARK_LOCAL_IP": "127.0.0.1",
                     "SPARK_LOCAL_DIRS": self._room}))
        return log

    def _said(self, log, pattern):
        """Waits until a log says this; its first group."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with open(log) as said:
                text = said.read()
            found = re.search(pattern, text)
            if found:
                return found[1]
            if any(process.poll() is not None for process in self._started):
                break
            time.sleep(0.2)
        raise AssertionError(f"the cluster is not there after {SECONDS} s, or ended: {text[-2000:]}")
