"""Writes footers of parquet files by hand, such as no writer writes: thrift in its compact form."""
import struct

INT64, BYTE_ARRAY = 2, 6  # physical types
ZSTD, LZO = 6, 3  # codecs
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


def _varint(number):
    number &= (1 << 64) - 1
    told = bytearray()
    while number > 0x7f:
        told.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(told) + bytes([number])


def _zigzag(number):
    return _varint(number << 1 ^ number >> 63)


def _value(kind, value):
    if kind in (_I32, _I64):
        return _zigzag(value)
    if kind == _BINARY:
        return _varint(len(value)) + value
    if kind == _LIST:
        inner, values = value
        begin = bytes([len(values) << 4 | inner]) if len(values) < 15 else bytes([0xf0 | inner]) + _varint(len(values))
        return begin + b"".join(_value(inner, each) for each in values)
    return value


def _struct(*fields):
    """fields: (number, kind, value), the numbers ascending; a value of None is left out."""
    told, last = b"", 0
    for number, kind, value in fields:
        if value is not None:
            told += bytes([number - last << 4 | kind]) + _value(kind, value)
            last = number
    return told + b"\0"


def element(name, physical=None, children=None, repetition=None):
    """An element of a schema."""
    return _struct((1, _I32, physical), (3, _I32, repetition), (4, _BINARY, name.encode()), (5, _I32, children))


def column(name, rows, physical=INT64, codec=ZSTD, offset=4, size=100):
    """A column of a row group that claims to lie in `size` bytes from `offset` on."""
    meta = _struct((1, _I32, physical), (2, _LIST, (_I32, [0])), (3, _LIST, (_BINARY, [name.encode()])),
                   (4, _I32, codec), (5, _I64, rows), (6, _I64, size), (7, _I64, size), (9, _I64, offset))
    return _struct((2, _I64, offset), (3, _STRUCT, meta))


def group(columns, rows):
    return _struct((1, _LIST, (_STRUCT, columns)), (2, _I64, 100), (3, _I64, rows))


def file_of(elements, groups, rows, body=bytes(200)):
    """The bytes of a file."""
    footer = _struct((1, _I32, 2), (2, _LIST, (_STRUCT, elements)), (3, _I64, rows), (4, _LIST, (_STRUCT, groups)))
    return b"PAR1" + body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def flat(names, rows, **claims):
    """A file of columns of whole numbers, whose pages are not there."""
    elements = [element("schema", children=len(names)), *(element(name, INT64, repetition=1) for name in names)]
    return file_of(elements, [group([column(name, rows, **claims) for name in names], rows)], rows)


def nested(depth):
    """A file with one column, which lies so many structures deep."""
    elements = [element("schema", children=1), *[element("call_id", children=1, repetition=1)] * depth,
                element("call_id", INT64, repetition=1)]
    return file_of(elements, [], 0)
