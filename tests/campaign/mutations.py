"""Changes to a trace that leave it an SQLite file: what a hand, a tool or an attacker could have done.

Each mutation takes the path of a copy and a random number generator, and says in a few words what it
did. One seed always gives one mutant of the same trace.
"""
import json
import os
import sqlite3

BIG = (0, 1, -1, 2, 3, 7, 8, 255, 256, 65535, 65536, 2**24 - 1, 2**24, 2**31 - 1, 2**31, -2**31, 2**32,
       2**39, 2**47, 2**53, 2**61, 2**62, 2**63 - 1, -2**63, -2, -8, -64, 10**6, 10**9)
TEXTS = ("", "evil", "NaN", "0", "-1", "[]", "[[]]", "[1", "{}", "null", "tensor", "tensor_list", "int_list",
         "undefined", "float64", "float16", "bool", "complex128", "int8", "out", "in", "inout", "after",
         "before", "opaque", "strided", "FRACTAL_NZ", "zstd", "raw", "aten", "aclnn", "aclrt", "aclmdlRI",
         "inductor", "autograd", "user", "module", "\x1b[2J\x1b]0;evil\x07", "\x00\x01\x02", "\u202eevil",
         "../../../etc/passwd", "'; DROP TABLE op; --", "%s%s%n", "a" * 100000, "[" * 20000,
         "[" + "1," * 50000 + "1]", "[9223372036854775807,9223372036854775807]", "[-1,-1]", "[1e308]",
         "[null]", "[\"x\"]", "2", "1000000", "18446744073709551616", "aten::add", "aten::mm",
         "aten::view", "aten::_local_scalar_dense", "aten::empty_strided", "aten::cat", "aclnnAdd",
         "aclrtMemcpyAsync", "aclrtSynchronizeStream", "aclmdlRICaptureEnd", "aclmdlRIExecuteAsync")
META = {"base_ns": BIG, "torch_threads": (1000000, -1, 0, "evil", "", 2**63), "state": ("recording", "evil", "partial"),
        "blas_threads": (1000000, "x"), "soft_device": ("{", "[]", "{\"generator\":99}", ""),
        "payload": ("all", "none", "evil"), "levels": ("acl", "aten", "evil"),
        "collector_pid": (1, -1, "x"), "cpu_count": (0, -1, 2**40), "torch_identity": ("evil", ""),
        "torch_library": ("/etc/passwd", "", "/dev/zero", "a" * 5000), "schema_version": (0, 99),
        "command": ("[", "{}", "[1,2]", "\x1b[31m"), "environment": ("[", "[]", "{\"a\":1}")}


def quote(name):
    return '"' + name.replace('"', '""') + '"'


class Mutant:
    """The connection to a copy, and what its schema holds."""

    def __init__(self, path, rng):
        self.path, self.rng = path, rng
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.text_factory = bytes
        self.database.execute("PRAGMA journal_mode=DELETE")
        self.tables = [name.decode() for name, in self.database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]

    def close(self):
        self.database.close()

    def columns(self, table):
        return [row[1].decode() for row in self.database.execute(f"PRAGMA table_info({quote(table)})")]

    def count(self, table):
        return self.database.execute(f"SELECT count(*) FROM {quote(table)}").fetchone()[0]

    def filled_table(self):
        # The tables that programs read most are changed most.
        weights = {"layout": 6, "signature_argument": 6, "call_row": 6, "buffer_row": 5, "snapshot": 4,
                   "signature": 3, "op": 3, "call_extra": 3, "step": 3, "payload": 3, "stream": 2, "event": 2,
                   "model": 2, "meta": 2, "barrier_rule": 0}
        filled = [table for table in self.tables if self.count(table) > 0]
        return self.rng.choices(filled, [weights.get(table, 1) for table in filled])[0]

    def rowid(self, table):
        """A condition that picks one row, and its values."""
        key = [row[1].decode() for row in self.database.execute(f"PRAGMA table_info({quote(table)})") if row[5]]
        row = self.rng.randrange(self.count(table))
        names = key or ["rowid"]
        listed = ", ".join(quote(name) if name != "rowid" else name for name in names)
        values = self.database.execute(f"SELECT {listed} FROM {quote(table)} LIMIT 1 OFFSET {row}").fetchone()
        values = tuple(value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values)
        return " AND ".join(f"{name} IS ?" for name in listed.split(", ")), values

    def value(self, old):
        """A value in the place of `old`: another type, a limit, or a small change."""
        rng, kind = self.rng, self.rng.random()
        if isinstance(old, bytes) and old[:1] == b"[" and kind < 0.6:
            return self.list_text(old)
        if isinstance(old, int) and kind < 0.35:
            new = rng.choice((old + 1, old - 1, -old, old * 2, old ^ (1 << rng.randrange(63)), old << 32))
            return max(-2**63, min(2**63 - 1, new))
        if kind < 0.55:
            return rng.choice(BIG)
        if kind < 0.7:
            return rng.choice(TEXTS)
        if kind < 0.8:
            return None
        if kind < 0.9:
            return rng.choice((float("inf"), float("-inf"), 1e300, -0.0, 0.5, 1e-320))
        return rng.randbytes(rng.choice((0, 1, 16, 1000)))

    def list_text(self, old):
        try:
            values = json.loads(old)
        except ValueError:
            return "[]"
        inner = [value for value in values if isinstance(value, list)]
        flat = self.rng.choice(inner) if inner else values
        change = self.rng.randrange(6)
        if change == 0 or not flat:
            flat.append(self.rng.choice(BIG))
        elif change == 1:
            flat.pop(self.rng.randrange(len(flat)))
        elif change == 2:
            flat[self.rng.randrange(len(flat))] = self.rng.choice((None, "x", [], 1.5, True))
        elif change == 3:
            self.rng.shuffle(flat)
        else:
            flat[self.rng.randrange(len(flat))] = self.rng.choice(BIG)
        return json.dumps(values, separators=(",", ":"))


def change_cell(mutant):
    table = mutant.filled_table()
    column = mutant.rng.choice(mutant.columns(table))
    where, key = mutant.rowid(table)
    old = mutant.database.execute(f"SELECT {quote(column)} FROM {quote(table)} WHERE {where}", key).fetchone()[0]
    new = mutant.value(old)
    mutant.database.execute(f"UPDATE OR REPLACE {quote(table)} SET {quote(column)} = ? WHERE {where}", (new, *key))
    return f"{table}.{column} of {key}: {str(old)[:40]} -> {str(new)[:40]}"


def change_column(mutant):
    table = mutant.filled_table()
    column = mutant.rng.choice(mutant.columns(table))
    old = mutant.database.execute(f"SELECT {quote(column)} FROM {quote(table)} LIMIT 1").fetchone()[0]
    new = mutant.value(old)
    mutant.database.execute(f"UPDATE OR REPLACE {quote(table)} SET {quote(column)} = ?", (new,))
    return f"every {table}.{column} -> {str(new)[:40]}"


def swap_cells(mutant):
    table = mutant.filled_table()
    column = mutant.rng.choice(mutant.columns(table))
    (where, key), (_, other) = mutant.rowid(table), mutant.rowid(table)
    new = mutant.database.execute(f"SELECT {quote(column)} FROM {quote(table)} WHERE {where}", other).fetchone()[0]
    mutant.database.execute(f"UPDATE OR REPLACE {quote(table)} SET {quote(column)} = ? WHERE {where}", (new, *key))
    return f"{table}.{column} of {key} as of {other}"


def delete_rows(mutant):
    table = mutant.filled_table()
    if mutant.rng.random() < 0.2:
        mutant.database.execute(f"DELETE FROM {quote(table)}")
        return f"no row of {table}"
    deleted = []
    for _ in range(mutant.rng.randint(1, 3)):
        if mutant.count(table) == 0:
            break
        where, key = mutant.rowid(table)
        mutant.database.execute(f"DELETE FROM {quote(table)} WHERE {where}", key)
        deleted.append(key)
    return f"without {table} {deleted}"


def add_row(mutant):
    table = mutant.filled_table()
    columns = mutant.columns(table)
    where, key = mutant.rowid(table)
    row = list(mutant.database.execute(f"SELECT * FROM {quote(table)} WHERE {where}", key).fetchone())
    for column in {0, mutant.rng.randrange(len(row))}:
        row[column] = mutant.value(row[column])
    mutant.database.execute(f"INSERT OR REPLACE INTO {quote(table)} VALUES({','.join('?' * len(columns))})", row)
    return f"{table} gains {str(row)[:80]}"


def change_meta(mutant):
    key = mutant.rng.choice(sorted(META))
    value = str(mutant.rng.choice(META[key]))
    mutant.database.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))
    return f"meta {key} = {value[:40]}"


ENDLESS = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {columns} FROM n",
           "SELECT {columns} FROM (SELECT 1 AS i)")


def change_schema(mutant):
    rng, database = mutant.rng, mutant.database
    table = rng.choice(mutant.tables)
    views = [name.decode() for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
    change = rng.randrange(9)
    if change == 0:
        columns = ", ".join(f"i AS {quote(name)}" for name in mutant.columns(table))
        database.execute(f"DROP TABLE {quote(table)}")
        database.execute(f"CREATE VIEW {quote(table)} AS " + rng.choice(ENDLESS).format(columns=columns))
        return f"{table} is a view"
    if change == 1 and views:
        view = rng.choice(views)
        columns = ", ".join(f"i AS {quote(name)}" for name in mutant.columns(view))
        database.execute(f"DROP VIEW {quote(view)}")
        database.execute(f"CREATE VIEW {quote(view)} AS " + rng.choice(ENDLESS).format(columns=columns))
        return f"view {view} is another"
    if change == 2:
        database.execute(f"CREATE TRIGGER evil AFTER INSERT ON {quote(table)} BEGIN "
                         f"INSERT INTO ledger(kind, subject, cause) "
                         "VALUES('evil', random(), hex(zeroblob(50000000))); END")
        return f"a trigger on {table}"
    if change == 3:
        database.execute(f"DROP TABLE {quote(table)}")
        return f"no table {table}"
    if change == 4:
        column = rng.choice(mutant.columns(table))
        database.execute(f"ALTER TABLE {quote(table)} RENAME COLUMN {quote(column)} TO evil")
        return f"{table}.{column} is named evil"
    if change == 5:
        columns = ", ".join(quote(name) for name in mutant.columns(table))
        rows = database.execute(f"SELECT * FROM {quote(table)}").fetchall()
        database.execute(f"DROP TABLE {quote(table)}")
        database.execute(f"CREATE TABLE {quote(table)}({columns})")
        marks = ",".join("?" * len(mutant.columns(table)))
        database.executemany(f"INSERT INTO {quote(table)} VALUES({marks})", rows)
        if rows and rng.random() < 0.5:
            database.execute(f"INSERT INTO {quote(table)} SELECT * FROM {quote(table)}")
        return f"{table} has no keys and no types"
    if change == 6:
        database.execute(f"CREATE INDEX evil ON {quote(table)}(hex(zeroblob(50)))")
        return f"an index over an expression on {table}"
    if change == 7:
        database.execute(f"PRAGMA user_version = {rng.choice((0, 1, 2, 3, 1000, -1))}")
        return "another schema version"
    database.execute("PRAGMA writable_schema = 1")
    database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (rng.choice(TEXTS[:20]), table))
    return f"another declaration of {table}"


def change_document(mutant):
    """Plans, witnesses and findings keep JSON."""
    places = [(table, column) for table, column in (
        ("plan", "document"), ("plan", "options"), ("witness", "options"), ("finding", "evidence"),
        ("comparison", "metrics"), ("run", "options"), ("stack", "frames"))
              if table in mutant.tables and column in mutant.columns(table) and mutant.count(table) > 0]
    if not places:
        return change_cell(mutant)
    table, column = mutant.rng.choice(places)
    where, key = mutant.rowid(table)
    old = mutant.database.execute(f"SELECT {column} FROM {table} WHERE {where}", key).fetchone()[0]
    new = change_json(old if isinstance(old, bytes) else b"{}", mutant.rng)
    mutant.database.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (new.decode("utf-8", "replace"), *key))
    return f"{table}.{column} of {key} changed inside"


def change_json(text, rng):
    """A JSON document with one value changed, or its text damaged."""
    if rng.random() < 0.2:
        position = rng.randrange(len(text) + 1)
        return text[:position] + rng.randbytes(rng.randint(0, 4)) + text[position + rng.randint(0, 20):]
    try:
        document = json.loads(text)
    except ValueError:
        return text
    places = []

    def walk(value):
        if isinstance(value, dict):
            places.extend((value, key) for key in value)
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            places.extend((value, index) for index in range(len(value)))
            for inner in value:
                walk(inner)

    walk(document)
    if not places:
        return b"[]"
    holder, key = rng.choice(places)
    change = rng.randrange(4)
    if change == 0 and isinstance(holder, dict):
        del holder[key]
    elif change == 1 and isinstance(holder, list):
        holder.append(holder[key])
    elif change == 2:
        holder[key] = rng.choice((None, [], {}, True, "evil", 1.5, -1.5e300, "a" * 10000))
    else:
        holder[key] = rng.choice(BIG)
    return json.dumps(document).encode()


ROWS = ((change_cell, 12), (change_column, 3), (swap_cells, 4), (delete_rows, 3), (add_row, 3), (change_meta, 2),
        (change_schema, 3), (change_document, 2))


def damage_bytes(path, rng):
    """Changes bytes of the file itself, or puts a journal beside it."""
    size = os.path.getsize(path)
    change = rng.randrange(5)
    with open(path, "r+b") as file:
        if change == 0:
            file.truncate(rng.randrange(size))
            return "truncated"
        if change < 3:
            for _ in range(rng.randint(1, 20)):
                file.seek(rng.randrange(size))
                file.write(rng.randbytes(rng.choice((1, 1, 4, 64))))
            return "bytes changed"
        file.seek(0)
        head = file.read(min(size, 65536))
    suffix = rng.choice(("-wal", "-journal"))
    magic = b"\x37\x7f\x06\x82" if suffix == "-wal" else b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
    with open(path + suffix, "wb") as file:
        file.write(magic + rng.randbytes(rng.randrange(200)) + head[rng.randrange(len(head)):])
    return f"a {suffix[1:]} of rubbish beside it"


def mutate(path, rng):
    """Changes the trace at `path`; returns what was done, in words."""
    if rng.random() < 0.08:
        return [damage_bytes(path, rng)]
    mutant = Mutant(path, rng)
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutation = rng.choices([function for function, _ in ROWS], [weight for _, weight in ROWS])[0]
        try:
            done.append(mutation(mutant))
        except (sqlite3.Error, OverflowError, IndexError, TypeError, ValueError) as error:
            done.append(f"{mutation.__name__} was not possible: {error}")
        if mutation is change_schema:
            break  # later changes would not know the tables
    mutant.close()
    return done
