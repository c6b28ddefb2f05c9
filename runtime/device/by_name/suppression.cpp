#include "runtime/device/by_name/suppression.h"

#include <limits>

namespace acltape::device {

using Value = NamedArithmetic::Value;

void RemoveTaken(NamedArithmetic& in, const Value& gone, const Value& taken, int64_t first) {
  const int64_t rows = taken.shape[0], columns = taken.shape[1];
  for (int64_t row = 0; row < rows && row + 1 < columns; ++row) {
    const int64_t others = columns - row - 1;
    const Value after = in.Part(gone, {others}, {1}, first + row + 1);
    const Value its = in.Part(taken, {others}, {1}, row * columns + row + 1);
    // 1 where the box is taken by one that is not gone, else 0 or less.
    in.Set(after, in.Greater(after, in.Subtract(its, in.Part(gone, {1}, {1}, first + row))));
  }
}

PickedBoxes PickBoxes(NamedArithmetic& in, const Boxes& boxes, const Value& eligible,
                      const Value& scores, const Value& overlap, int64_t most) {
  constexpr double kLeastUnion = 1e-12;
  const int64_t rows = scores.shape[0], n = scores.shape[1], numbers = kPickedNumbers;
  const Value areas = in.Multiply(Width(in, boxes), Height(in, boxes));
  const Value table = in.Space({rows * n, numbers});
  const Value* columns[] = {&boxes.x0, &boxes.y0, &boxes.x1, &boxes.y1, &areas};
  for (int64_t i = 0; i < numbers; ++i) {
    in.Set(in.Part(table, {rows, n}, {n * numbers, numbers}, i), *columns[i]);
  }
  // n for the first box of a row, and 1 for the last: the greatest rank is that of the first.
  const Value ranks = in.Plus(in.Times(in.Counting({1, n}), -1), static_cast<double>(n));
  const Value row_begins = in.Times(in.Counting({rows, 1}), static_cast<double>(n));
  const Value lowest = in.Filled({1, 1}, -std::numeric_limits<float>::infinity());
  PickedBoxes picked{in.Space({rows, most}), in.Space({rows, most}),
                     in.Space({rows, most, numbers})};
  Value remaining = eligible;
  for (int64_t pick = 0; pick < most; ++pick) {
    const Value best = in.Greatest(in.Where(remaining, scores, lowest), 1);
    const Value is_best = in.Not(in.Positive(in.Subtract(best, scores)));
    const Value keys = in.Multiply(in.Multiply(remaining, is_best), ranks);
    const Value key = in.Greatest(keys, 1);
    const Value found = in.Positive(key);
    const Value position = in.Multiply(found, in.Plus(in.Times(key, -1), static_cast<double>(n)));
    const Value box = in.Rows(table, in.Indices(in.As(in.Add(position, row_begins), {rows})));
    const auto number = [&](int64_t i) { return in.Part(box, {rows, 1}, {numbers, 1}, i); };
    in.Set(in.Part(picked.position, {rows, 1}, {most, 1}, pick), position);
    in.Set(in.Part(picked.found, {rows, 1}, {most, 1}, pick), found);
    in.Set(in.Part(picked.boxes, {rows, numbers}, {most * numbers, 1}, pick * numbers), box);
    const Boxes inner = Intersection(in, boxes, {number(0), number(1), number(2), number(3)});
    const Value shared =
        in.Multiply(in.AtLeast(Width(in, inner), 0), in.AtLeast(Height(in, inner), 0));
    const Value all = in.AtLeast(in.Subtract(in.Add(areas, number(4)), shared), kLeastUnion);
    const Value taken = in.Positive(in.Subtract(in.Divide(shared, all), overlap));
    const Value is_other = in.Positive(in.Subtract(key, keys));
    remaining = in.Multiply(in.Multiply(remaining, is_other), in.Not(taken));
  }
  return picked;
}

}  // namespace acltape::device
