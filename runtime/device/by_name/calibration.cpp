// The scale and the offset with which numbers lose least when they are quantised (IFMR, "input
// feature map reconstruction").
#include <cmath>

#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

struct Calibration {
  int64_t numbers, bins, steps;
  double highest, lowest;  // parts of the numbers, between which the range of the search begins
  double search_from, search_step;
  bool with_offset;
  double least, most;  // the range of the quantised numbers
};

aclError CheckCalibrationTensors(const NamedCall& call, Calibration* with) {
  const auto is_float = [](aclDataType type) { return type == ACL_FLOAT || type == ACL_FLOAT16; };
  const std::vector<int64_t>& bins = call.inputs.Shape(3);
  bool fits = bins.size() == 1 && call.inputs.descs[3]->type == ACL_INT32;
  for (int i : {0, 1, 2}) {
    fits = fits && is_float(call.inputs.descs[i]->type) && !call.inputs.InBlocks(i) &&
           (i == 0 || ElementsOf(call.inputs.Shape(i)) == 1);
  }
  for (int i : {0, 1}) {
    fits = fits && is_float(call.outputs.descs[i]->type) && ElementsOf(call.outputs.Shape(i)) == 1;
  }
  with->numbers = static_cast<int64_t>(ElementsOf(call.inputs.Shape(0)));
  with->bins = fits ? bins[0] : 0;
  constexpr int64_t kMostBins = 8192;
  if (fits && with->numbers > 0 && with->bins > 0 && with->bins <= kMostBins) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: data has the shape %s and cumsum %s; expected elements, 1 to %lld bins in "
              "int32, and one element in data_min, data_max, scale and offset, in float32 or "
              "float16",
              call.name, ShapeText(call.inputs.Shape(0)).c_str(), ShapeText(bins).c_str(),
              static_cast<long long>(kMostBins));
}

aclError ReadCalibration(const NamedCall& call, Calibration* with) {
  ACLTAPE_RETURN_IF_FAILED(CheckCalibrationTensors(call, with));
  constexpr int64_t kMostSteps = 4096;
  const std::vector<double> range = RealsOf(call, "search_range");
  const double step = RealOf(call, "search_step", 0);
  const int64_t bits = IntegerOf(call, "quant_bits", 8);
  const double steps = range.size() == 2 && range[1] > range[0] && step > 0
                           ? std::floor((range[1] - range[0]) / step) + 1
                           : 0;
  if (!(steps >= 1 && steps <= kMostSteps) || (bits != 8 && bits != 16)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: search_range has %zu numbers, search_step is %g and quant_bits %lld; "
                "expected two numbers with 1 to %lld steps between them, and 8 or 16",
                call.name, range.size(), step, static_cast<long long>(bits),
                static_cast<long long>(kMostSteps));
  }
  with->steps = static_cast<int64_t>(steps);
  with->highest = RealOf(call, "max_percentile", 0);
  with->lowest = 1 - RealOf(call, "min_percentile", 0);
  with->search_from = range[0];
  with->search_step = step;
  with->with_offset = FlagOf(call, "with_offset", false);
  with->least = -std::exp2(static_cast<double>(bits - 1));
  with->most = -with->least - 1;
  return ACL_SUCCESS;
}

// Scales and offsets of all steps. [steps, 1].
struct QuantCandidates {
  Value scales, offsets;
};

QuantCandidates CandidatesOf(NamedArithmetic& in, const Calibration& with) {
  const Value least = in.Read(1, {1, 1}, {1, 1});
  const Value length = in.Subtract(in.Read(2, {1, 1}, {1, 1}), least);
  const Value parts =
      in.Over(in.Read(3, {1, with.bins}, {with.bins, 1}), static_cast<double>(with.numbers));
  // The place in the range of data up to which less than this part of the numbers lies.
  const auto place = [&](double part) {
    const Value below = in.Positive(in.Plus(in.Times(parts, -1), part));
    const Value bins = in.As(in.Sum(below, {0, 1}), {1, 1});
    return in.Add(in.Multiply(in.Over(bins, static_cast<double>(with.bins)), length), least);
  };
  Value high = place(with.highest), low = place(with.lowest);
  const Value steps =
      in.Plus(in.Times(in.Counting({with.steps, 1}), with.search_step), with.search_from);
  if (!with.with_offset) {
    high = in.Greater(in.Abs(high), in.Abs(low));
    const Value scales = in.Over(in.Multiply(steps, high), with.most);
    return {scales, in.Filled({with.steps, 1}, 0)};
  }
  high = in.AtLeast(high, 0);
  low = in.AtMost(low, 0);
  const Value scales = in.Over(in.Subtract(in.Multiply(steps, high), low), with.most - with.least);
  const Value zero = in.Round(in.Divide(low, scales));
  return {scales, in.Times(in.Plus(zero, -with.least), -1)};
}

// The squares of what the numbers lose with each candidate, summed. [steps].
Value LossesOf(NamedArithmetic& in, const Calibration& with, const QuantCandidates& candidates) {
  constexpr int64_t kMostTogether = int64_t{1} << 22;  // numbers that are in memory together
  const int64_t group = std::max<int64_t>(1, kMostTogether / with.numbers);
  const Value data = in.Copied(0, {1, with.numbers}, {with.numbers, 1});
  Value losses = in.Space({with.steps});
  for (int64_t first = 0; first < with.steps; first += group) {
    const int64_t count = std::min(group, with.steps - first);
    const auto some = [&](const Value& of) { return in.Part(of, {count, 1}, {1, 1}, first); };
    const Value scale = some(candidates.scales), offset = some(candidates.offsets);
    const Value inverse = in.Divide(in.Filled({1, 1}, 1), scale);
    const Value rounded = in.Add(in.Round(in.Multiply(data, inverse)), offset);
    const Value kept = in.AtLeast(in.AtMost(rounded, with.most), with.least);
    const Value lost = in.Subtract(in.Multiply(in.Subtract(kept, offset), scale), data);
    in.Set(in.Part(losses, {count}, {1}, first), in.Sum(in.Multiply(lost, lost), {1}));
  }
  return losses;
}

// (data, data_min, data_max, cumsum) to a scale and an offset. The search begins at the range of
// data in which the given parts of the numbers lie, by the sums of a histogram, and multiplies its
// upper end by each step of search_range. The rules are those of the vendor's kernel:
// floor((end - begin) / step) + 1 steps, of the numbers as float32; and for a scale of 2^-23 or
// less the scale 1 with the least offset. Of equal losses the first counts.
aclError SearchScale(const NamedCall& call) {
  constexpr double kLeastScale = 1.1920929e-07;
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 4, 2));
  Calibration with{};
  ACLTAPE_RETURN_IF_FAILED(ReadCalibration(call, &with));
  NamedArithmetic in(call);
  const QuantCandidates candidates = CandidatesOf(in, with);
  const Value losses = LossesOf(in, with, candidates);
  const Value best = in.First(in.Descending(in.Times(losses, -1)), 1);
  const Value scale = in.Rows(candidates.scales, best);
  const Value offset = in.Rows(candidates.offsets, best);
  const Value large = in.Positive(in.Plus(scale, -kLeastScale));
  in.Write(in.Where(large, scale, in.Filled({1, 1}, 1)), 0, {1, 1});
  in.Write(in.Where(large, offset, in.Filled({1, 1}, with.with_offset ? with.least : 0)), 1,
           {1, 1});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kCalibration[] = {
    {"IFMR", SearchScale},
};

}  // namespace

NamedTable CalibrationByName() { return kCalibration; }

}  // namespace acltape::device
