"""Writes a part, which is one rank of one run, into a folder of fleet tables.

Note [A part is there or is not]. The data files of a part have names that nobody else uses. Its manifest names them,
and comes into being by one rename: what no manifest names is not read. While a part is written, a claim in
DIR/writing says so. The writer holds the claim's lock, which the system ends with the process. So a claim without a
lock is that of a writer that was killed, and the next one removes its files (remove_leftovers).
"""
import errno
import fcntl
import glob
import json
import os
import re
import secrets
import socket
import stat
import zlib

from acltape.fleet.columns import Failure
from acltape.fleet.plain_file import open_plain

FORMAT = 1
MARKER = "acltape_fleet.json"
USAGE, TRACE, DEVICE = 2, 3, 4  # exit codes of the command
_RUN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_HASH = re.compile(r"[0-9a-f]{16}")


def judge_run(name):
    if not _RUN.fullmatch(name):
        raise Failure(USAGE, f"'{name}' cannot be the name of a run: it has 1 to 100 letters, digits and . _ - and "
                             "does not begin with a point; give one by --name")
    return name


def open_folder(path):
    """Makes the folder, or takes one that is a folder of fleet tables already."""
    path = os.path.abspath(os.fspath(path))
    if os.path.islink(path):
        raise Failure(USAGE, f"'{path}' is a link, through which nothing is written; name the folder itself")
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise Failure(USAGE, f"'{path}' is no folder; name a new or an empty one, or one of fleet tables, before the "
                             "traces: acltape fleet add DIR TRACE...") from None
    marker = os.path.join(path, MARKER)
    found = _json_of(marker, 1 << 16)
    if found is not None:
        kind = found.get("format")
        if kind != FORMAT:
            told = f"is of format {str(kind)[:20]}" if isinstance(kind, (int, str)) else "names no format"
            raise Failure(USAGE, f"'{marker}' {told}, and this acltape writes {FORMAT}; name another folder")
    else:
        there = [name for name in sorted(os.listdir(path)) if not name.startswith(MARKER)]
        # Another one may just have made the folder.
        if there and not os.path.lexists(marker):
            raise Failure(USAGE, f"the folder '{path}' holds '{there[0]}' and no fleet tables; name a new or an empty "
                                 "one")
        partial = os.path.join(path, f"{MARKER}.{os.getpid()}.partial")
        _write_json(partial, {"format": FORMAT, "tables": 1})
        os.replace(partial, marker)
    for name in ("manifest", "data", "writing"):
        _inner_folder(path, name)
    return path


def _inner_folder(top, *words):
    """A folder below another, made where it is not there. Raises Failure for a link on the way and for a file."""
    path = top
    for word in words:
        path = os.path.join(path, word)
        if os.path.islink(path):
            raise Failure(USAGE, f"'{path}' is a link, through which nothing is written; remove it, or name another "
                                 "folder")
        try:
            os.makedirs(path, exist_ok=True)
        except FileExistsError:
            raise Failure(USAGE, f"'{path}' is no folder, and this place is that of one; remove it, or name another "
                                 "folder") from None
    return path


def _is_below(top, path):
    """True if no folder between `top` and `path` is a link."""
    inner = os.path.dirname(path)
    while len(inner) > len(top):
        if os.path.islink(inner):
            return False
        inner = os.path.dirname(inner)
    return True


def _json_of(path, most):
    """What a plain file says, None where there is none, {} where it says no JSON object."""
    try:
        with open_plain(path) as file:
            said = json.loads(file.read(most))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def manifest_of(folder, run, rank):
    return os.path.join(folder, "manifest", f"{run}.{rank}.json")


def read_manifest(path):
    """The manifest of a part, None where there is none, {} where it cannot be read."""
    return _json_of(path, 16 << 20)


def judge_absent(folder, run, rank):
    """Raises Failure if the folder has the part."""
    old = read_manifest(manifest_of(folder, run, rank))
    if old is None:
        return
    of = old["trace"].get("path") if isinstance(old.get("trace"), dict) else None
    of = f"of '{of[:200]}'" if isinstance(of, str) else "with a manifest that does not say its trace"
    raise Failure(USAGE, f"rank {rank} of run '{run}' is there already, {of}; --force replaces it, and --name gives "
                         "another one")


def _hash_of(manifest):
    said = (manifest or {}).get("hash")
    return said if isinstance(said, str) and _HASH.fullmatch(said) else None


def _synced(path):
    """Puts a file on the disk. The CRC-32 of its bytes."""
    crc = 0
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        while piece := file.read(1 << 20):
            crc = zlib.crc32(piece, crc)
    return crc


def _write_json(path, content):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def _remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def remove_data(folder, run, rank, name):
    """Removes the data files of one writing of a part, and the folders of the part that are empty then."""
    inside = os.path.join(glob.escape(folder), "data", "*", f"run={run}", f"rank={rank}")
    for path in glob.glob(os.path.join(inside, f"{name}-*")) + glob.glob(os.path.join(inside, "*", f"{name}-*")):
        if not _is_below(folder, path):
            continue
        _remove(path)
        inner = os.path.dirname(path)
        # The folder of the run may be that of other parts which are just being written.
        while not os.path.basename(inner).startswith("run="):
            try:
                os.rmdir(inner)
            except OSError:
                break
            inner = os.path.dirname(inner)


def _remove_writing(folder, name):
    """Removes the claim of a writing, last, and what lies beside it."""
    beside = os.path.join(folder, "writing", name)
    for path in glob.glob(glob.escape(beside) + ".*"):
        if path != beside + ".json":
            _remove(path)
    _remove(beside + ".json")


def _dead_claims(folder):
    """The claims of writers that are gone, each held while it is looked at: its hash and what it says."""
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "writing", "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                continue
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            claim = json.loads(os.read(handle, 1 << 16))
            if _HASH.fullmatch(name) and _RUN.fullmatch(claim["run"]) and type(claim["rank"]) is int:
                yield name, claim
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            pass  # its writer lives, or no acltape wrote it
        finally:
            os.close(handle)


def remove_leftovers(folder):
    """Ends what killed writers began: removes their data, or what they were about to replace. Returns how many."""
    count = 0
    for name, claim in _dead_claims(folder):
        run, rank, replaces = claim["run"], claim["rank"], claim.get("replaces")
        if _hash_of(read_manifest(manifest_of(folder, run, rank))) != name:
            remove_data(folder, run, rank, name)
        elif isinstance(replaces, str) and _HASH.fullmatch(replaces):
            remove_data(folder, run, rank, replaces)
        _remove_writing(folder, name)
        count += 1
    return count


class Part:
    """A part that is being written. Use it in a `with`: what is not committed at its end is removed."""

    def __init__(self, folder, run, rank, replace=False):
        """Raises Failure if the part is there, unless `replace`."""
        self.folder, self.run, self.rank, self.replace = folder, judge_run(run), rank, replace
        self.hash = secrets.token_hex(8)
        self.manifest = manifest_of(folder, run, rank)
        if not replace:
            judge_absent(folder, run, rank)
        self._replaces = _hash_of(read_manifest(self.manifest))
        self._committed = False
        self._lock = self._take_claim()

    def _take_claim(self):
        # It is locked before it has its name, so that nobody takes it for a dead writer's.
        partial = self._beside("claim")
        handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.write(handle, json.dumps({"run": self.run, "rank": self.rank, "replaces": self._replaces,
                                         "pid": os.getpid(), "host": socket.gethostname()}).encode())
            os.rename(partial, self._beside("json"))
        except BaseException:
            _remove(partial)
            os.close(handle)
            raise
        return handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if not self._committed:
                remove_data(self.folder, self.run, self.rank, self.hash)
            _remove_writing(self.folder, self.hash)
        finally:
            os.close(self._lock)

    def scratch(self):
        """A file for what is needed while the part is written."""
        return self._beside("db")

    def _beside(self, suffix):
        return os.path.join(self.folder, "writing", f"{self.hash}.{suffix}")

    def data_file(self, table, number, first_step=None):
        """The path of a new data file in the folder, and as it is opened. Its folders are made."""
        words = ["data", table, f"run={self.run}", f"rank={self.rank}"]
        if first_step is not None:
            words.append(f"first_step={first_step}")
        inner = _inner_folder(self.folder, *words)
        words.append(f"{self.hash}-{number}.parquet")
        return "/".join(words), os.path.join(inner, words[-1])

    def commit(self, manifest):
        """Makes the part be there. `manifest` is all that it says besides who it is."""
        whole = {"format": FORMAT, "run": self.run, "rank": self.rank, "hash": self.hash, **manifest}
        for table in whole["tables"].values():
            for file in table["files"]:
                file["crc32"] = _synced(os.path.join(self.folder, file["path"]))
        partial = self._beside("manifest")
        _write_json(partial, whole)
        try:
            if self.replace:
                os.replace(partial, self.manifest)
            else:
                os.link(partial, self.manifest)
        except FileExistsError:
            judge_absent(self.folder, self.run, self.rank)
            raise
        self._committed = True
        if self._replaces:
            remove_data(self.folder, self.run, self.rank, self._replaces)


def sentence_of(error, path):
    """What an OSError of writing says, as a Failure."""
    if error.errno == errno.ENOSPC:
        return Failure(DEVICE, f"no room left on the disk of '{path}'; nothing half is left there")
    of = f" ('{error.filename}')" if isinstance(error.filename, str) else ""
    return Failure(DEVICE, f"the folder '{path}' cannot be written: {error.strerror or error}{of}")
