"""Reads timelines without any code of acltape and without a library for the format.

`Perfetto` decodes the wire format of protocol buffers and keeps what the tests ask for; `Chrome` reads
JSON. Both check while they read: begins and ends balance on each track, times ascend, texts are
defined before they are used, and both give the same shape: slices, arrows, counters and tracks.
"""
import collections
import gzip
import json
import os
import re

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

Slice = collections.namedtuple("Slice", "track name category begin end depth arguments starts ends")


def varint(data, offset):
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, offset


def fields(data):
    """(number, value) of each field: integers, or bytes of what has a length."""
    offset, found = 0, []
    while offset < len(data):
        key, offset = varint(data, offset)
        kind = key & 7
        if kind == 0:
            value, offset = varint(data, offset)
        elif kind == 1:
            value, offset = int.from_bytes(data[offset:offset + 8], "little"), offset + 8
        elif kind == 2:
            length, offset = varint(data, offset)
            value, offset = data[offset:offset + length], offset + length
            assert len(value) == length, "a field ends after the file"
        else:
            raise AssertionError(f"wire type {kind}")
        found.append((key >> 3, value))
    return found


def one(message, number, otherwise=None):
    values = [value for field, value in message if field == number]
    assert len(values) <= 1, (number, values)
    return values[0] if values else otherwise


class Timeline:
    def __init__(self):
        self.slices, self.tracks, self.counters = [], {}, collections.defaultdict(list)
        self.open = collections.defaultdict(list)
        self.last_ns = collections.defaultdict(lambda: None)
        self.clears = 0

    def at(self, key, ns):
        assert self.last_ns[key] is None or self.last_ns[key] <= ns, f"time goes back on {key}"
        assert self.last_ns[None] is None or self.last_ns[None] <= ns, "the file is not sorted"
        self.last_ns[key] = self.last_ns[None] = ns

    def begin(self, track, ns, name, category, arguments, starts, ends):
        self.at(track, ns)
        self.open[track].append((len(self.slices), ns))
        self.slices.append(Slice(track, name, category, ns, None, len(self.open[track]), arguments,
                                 starts, ends))

    def end(self, track, ns):
        self.at(track, ns)
        number, _ = self.open[track].pop()
        self.slices[number] = self.slices[number]._replace(end=ns)

    def finish(self):
        assert not any(self.open.values()), "slices that do not end"
        starts = collections.Counter(arrow for s in self.slices for arrow in s.starts)
        ends = collections.Counter(arrow for s in self.slices for arrow in s.ends)
        assert starts == ends, ("arrows without their other end", starts - ends, ends - starts)
        assert not starts or max(starts.values()) == 1
        self.arrows = []
        source = {arrow: s for s in self.slices for arrow in s.starts}
        for s in self.slices:
            for arrow in s.ends:
                assert source[arrow].begin <= s.begin, "an arrow leads back in time"
                self.arrows.append((source[arrow], s))

    def named(self, name):
        return [s for s in self.slices if s.name == name]

    def by_call(self):
        return {s.arguments["call_id"]: s for s in self.slices
                if "call_id" in s.arguments and s.category != "device"}


class Perfetto(Timeline):
    def __init__(self, path):
        super().__init__()
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rb") as file:
            packets = fields(file.read())
        self.packets = len(packets)
        self.texts = None
        for number, packet in packets:
            assert number == 1, "the file holds packets alone"
            self.packet(fields(packet))
        self.finish()

    def packet(self, packet):
        assert one(packet, 10) == 1, "every packet is of the one sequence"
        flags = one(packet, 13, 0)
        if flags & 1:
            self.clears += 1
            self.texts = collections.defaultdict(dict)
            assert one(fields(one(packet, 59)), 58) == 3, "times are of CLOCK_MONOTONIC"
        if (clocks := one(packet, 6)) is not None:
            clocks = fields(clocks)
            assert one(clocks, 2) == 3
            self.clocks = {one(fields(clock), 1): one(fields(clock), 2)
                           for number, clock in clocks if number == 1}
        if (track := one(packet, 60)) is not None:
            self.track(fields(track))
        if (texts := one(packet, 12)) is not None:
            for kind, row in fields(texts):
                row = fields(row)
                assert one(row, 1) not in self.texts[kind] and one(row, 1) > 0
                self.texts[kind][one(row, 1)] = one(row, 2).decode("utf-8")
        if (event := one(packet, 11)) is not None:
            assert flags & 2 and self.texts is not None
            self.event(one(packet, 8), fields(event))

    def track(self, row):
        uuid, parent = one(row, 1), one(row, 5)
        assert uuid not in self.tracks and (parent is None or parent in self.tracks)
        process, thread = one(row, 3), one(row, 4)
        name = one(row, 2)
        if process is not None:
            kind, name = "process", one(fields(process), 6)
        elif thread is not None:
            kind, name = "thread", one(fields(thread), 5)
        else:
            kind = "counter" if one(row, 8) is not None else "slices"
        self.tracks[uuid] = (kind, name.decode("utf-8"), parent)

    def event(self, ns, event):
        kind, track = one(event, 9), one(event, 11)
        assert track in self.tracks, "an event before its track"
        if kind == 4:
            assert self.tracks[track][0] == "counter"
            self.at(track, ns)
            self.counters[self.tracks[track][1]].append((ns, one(event, 30)))
        elif kind == 2:
            self.end(track, ns)
        else:
            assert kind == 1
            arguments = {}
            for number, row in event:
                if number == 4:
                    row = fields(row)
                    text = one(row, 17)
                    arguments[self.texts[3][one(row, 1)]] = (
                        one(row, 4) if text is None else self.texts[29][text])
            self.begin(track, ns, self.texts[2][one(event, 10)], self.texts[1][one(event, 3)],
                       arguments, [v for n, v in event if n == 47], [v for n, v in event if n == 48])


class Chrome(Timeline):
    def __init__(self, path):
        super().__init__()
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rb") as file:
            document = json.loads(file.read().decode("utf-8"))
        assert document["displayTimeUnit"] == "ns"
        self.base_ns = int(document["otherData"]["begin_monotonic_ns"])
        for event in document["traceEvents"]:
            self.event(event)
        self.finish()

    def event(self, event):
        track, kind = (event["pid"], event["tid"]), event["ph"]
        if kind == "M":
            if event["name"] in ("thread_name", "process_name"):
                assert track not in self.tracks
                self.tracks[track] = (event["name"], event["args"]["name"], None)
            return
        ns = self.base_ns + round(event["ts"] * 1000)
        if kind == "B":
            assert track in self.tracks
            self.begin(track, ns, event["name"], event["cat"], event.get("args", {}), [], [])
        elif kind == "E":
            self.end(track, ns)
        elif kind == "C":
            self.at(track, ns)
            self.counters[event["name"]].append((ns, event["args"]["bytes"]))
        else:
            # An arrow lies at the start of the slice that began last on its track.
            number, begin = self.open[track][-1]
            assert begin == ns
            if kind == "s":
                self.slices[number].starts.append(event["id"])
            else:
                assert kind == "f" and event["bp"] == "e"
                self.slices[number].ends.append(event["id"])


def declared_fields():
    """{message: {field: number}} of the table in timeline/perfetto_fields.h."""
    with open(os.path.join(SOURCE, "timeline", "perfetto_fields.h")) as file:
        text = file.read()
    table = {}
    for message, rows in re.findall(r"enum class (\w+) : protozero::pbf_tag_type \{(.*?)\};", text,
                                    re.S):
        table[message] = {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower(): int(number)
                          for name, number in re.findall(r"k(\w+) = (\d+)", rows)}
    return table
