"""How far results may lie apart that are rounded at other places.

Eight units of the dtype at the size of the values, which is 8 for logarithms and 0.25 for the elements of a vector
of length 1.
"""
UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
LOGARITHMS = {dtype: 8 * 8 * unit for dtype, unit in UNITS.items()}
VECTORS = {dtype: 8 * 0.25 * unit for dtype, unit in UNITS.items()}
