#include "analyzer/gears/gears.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "base/median.h"
#include "storage/error.h"
#include "storage/plain_file.h"

namespace acltape::analyzer::gears {
namespace {

// The cost of a segment of sizes. A step is padded to the segment's last size or runs eagerly. Sums
// over the sizes before each place make each answer fast.
class SegmentCosts {
 public:
  SegmentCosts(const SizeHistogram& histogram, const GearCosts& costs)
      : histogram_(histogram), costs_(costs) {
    steps_.assign(1, 0);
    units_.assign(1, 0);
    for (const SizeCount& row : histogram) {
      steps_.push_back(steps_.back() + static_cast<double>(row.steps));
      units_.push_back(units_.back() +
                       static_cast<double>(row.steps) * static_cast<double>(row.size));
    }
    // Padding to a size pays from some smaller size on. That smaller size grows with the padded
    // one.
    size_t from = 0;
    for (const SizeCount& gear : histogram) {
      while (costs.padding_ns * static_cast<double>(gear.size - histogram[from].size) >
             costs.eager_ns) {
        ++from;
      }
      padded_from_.push_back(from);
    }
  }

  // The cost of the sizes [begin, end) with the last of them as gear.
  double Captured(size_t begin, size_t end) const {
    const size_t from = std::max(begin, padded_from_[end - 1]);
    const double padding =
        static_cast<double>(histogram_[end - 1].size) * (steps_[end] - steps_[from]) -
        (units_[end] - units_[from]);
    return costs_.padding_ns * padding + Eager(begin, from);
  }
  double Eager(size_t begin, size_t end) const {
    return costs_.eager_ns * (steps_[end] - steps_[begin]);
  }

 private:
  const SizeHistogram& histogram_;
  const GearCosts& costs_;
  std::vector<double> steps_;
  std::vector<double> units_;
  std::vector<size_t> padded_from_;
};

// best[e] is the least cost of sizes [0, e) with a given number of gears, the last one at e - 1.
struct Layer {
  std::vector<double> best;
  std::vector<uint32_t> begin;  // begin of the last segment
};

void FillLayer(const SegmentCosts& costs, const Layer& before, Layer& layer, size_t low,
               size_t high, size_t least, size_t most) {
  if (low >= high) return;
  const size_t end = (low + high) / 2;
  size_t chosen = least;
  double best = std::numeric_limits<double>::infinity();
  for (size_t begin = least; begin <= most && begin < end; ++begin) {
    const double cost = before.best[begin] + costs.Captured(begin, end);
    if (cost < best) {
      best = cost;
      chosen = begin;
    }
  }
  layer.best[end] = best;
  layer.begin[end] = static_cast<uint32_t>(chosen);
  FillLayer(costs, before, layer, low, end, least, chosen);
  FillLayer(costs, before, layer, end + 1, high, chosen, most);
}

// With more sizes each one is paired with one other, half of them away.
constexpr size_t kMostPairedSizes = 256;

}  // namespace

SizeHistogram MakeHistogram(const std::vector<SizeCount>& rows) {
  std::map<int64_t, int64_t> steps;
  for (const SizeCount& row : rows) steps[row.size] += row.steps;
  SizeHistogram histogram;
  for (const auto& [size, count] : steps) {
    if (count > 0) histogram.push_back({size, count});
  }
  return histogram;
}

SizeHistogram ReadHistogram(const std::string& path) {
  std::string why;
  const std::optional<std::string> text = storage::ReadPlainFile(path, &why);
  if (!text) throw Error(ErrorKind::kUsage, "the histogram " + path + " " + why + ".");
  std::istringstream file(*text);
  std::vector<SizeCount> rows;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (number == 1 && line.find_first_of("0123456789") == std::string::npos) continue;
    std::istringstream fields(line);
    SizeCount row;
    char comma = 0;
    if (!(fields >> row.size >> comma >> row.steps) || comma != ',' || !(fields >> std::ws).eof() ||
        row.size < 1 || row.steps < 0) {
      throw Error(ErrorKind::kUsage, path + " line " + std::to_string(number) + ": '" + line +
                                         "' is not 'size,count' with a size of at least 1.");
    }
    rows.push_back(row);
  }
  SizeHistogram histogram = MakeHistogram(rows);
  if (histogram.empty()) {
    throw Error(ErrorKind::kUsage, "the histogram " + path + " has no line 'size,count'.");
  }
  return histogram;
}

LineFit FitLine(const std::vector<SizedTime>& times) {
  std::map<int64_t, std::vector<double>> by_size;
  for (const SizedTime& time : times) by_size[time.size].push_back(time.ns);
  struct Point {
    double size = 0;
    double ns = 0;
    double steps = 0;
  };
  std::vector<Point> points;
  for (auto& [size, ns] : by_size) {
    points.push_back({static_cast<double>(size), base::Median(ns), static_cast<double>(ns.size())});
  }
  std::vector<base::Weighted> slopes;
  const size_t count = points.size();
  const auto add = [&](const Point& a, const Point& b) {
    slopes.push_back({(b.ns - a.ns) / (b.size - a.size), a.steps * b.steps});
  };
  if (count <= kMostPairedSizes) {
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = i + 1; j < count; ++j) add(points[i], points[j]);
    }
  } else {
    for (size_t i = 0; i + count / 2 < count; ++i) add(points[i], points[i + count / 2]);
  }
  LineFit fit;
  fit.slope_ns = std::max(0.0, base::WeightedMedian(slopes));
  std::vector<base::Weighted> bases;
  for (const Point& point : points) {
    bases.push_back({point.ns - fit.slope_ns * point.size, point.steps});
  }
  fit.base_ns = std::max(0.0, base::WeightedMedian(bases));
  return fit;
}

GearUse EvaluateGears(const SizeHistogram& histogram, const std::vector<int64_t>& gears,
                      const GearCosts& costs) {
  GearUse use;
  for (const SizeCount& row : histogram) {
    use.steps += row.steps;
    const auto count = static_cast<double>(row.steps);
    const auto gear = std::lower_bound(gears.begin(), gears.end(), row.size);
    const double padding = gear == gears.end() ? 0 : static_cast<double>(*gear - row.size);
    if (gear == gears.end() || costs.padding_ns * padding > costs.eager_ns) {
      use.eager_steps += row.steps;
      use.cost_ns += costs.eager_ns * count;
      continue;
    }
    (padding == 0 ? use.exact_steps : use.padded_steps) += row.steps;
    use.padding += padding * count;
    use.size += static_cast<double>(row.size) * count;
    use.cost_ns += costs.padding_ns * padding * count;
  }
  return use;
}

std::vector<int64_t> ChooseGears(const SizeHistogram& histogram, const GearCosts& costs,
                                 int64_t most) {
  const size_t count = histogram.size();
  const SegmentCosts segments(histogram, costs);
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<Layer> layers(1);
  layers[0].best.assign(count + 1, infinity);
  layers[0].best[0] = 0;
  double best = segments.Eager(0, count);
  size_t best_layer = 0;
  size_t best_end = 0;
  // More gears never cost more. The loop ends when one more brings nothing.
  for (size_t gears = 1; gears <= count && static_cast<int64_t>(gears) <= most; ++gears) {
    Layer& layer = layers.emplace_back();
    layer.best.assign(count + 1, infinity);
    layer.begin.assign(count + 1, 0);
    FillLayer(segments, layers[gears - 1], layer, gears, count + 1, gears - 1, count - 1);
    layers[gears - 1].best = {};
    bool better = false;
    for (size_t end = gears; end <= count; ++end) {
      const double cost = layer.best[end] + segments.Eager(end, count);
      // Sums of the same steps in another order may differ by rounding.
      if (cost >= best - 1e-9 * std::abs(best)) continue;
      best = cost;
      best_layer = gears;
      best_end = end;
      better = true;
    }
    if (!better) break;
  }
  std::vector<int64_t> chosen;
  for (size_t layer = best_layer, end = best_end; layer > 0; --layer) {
    chosen.push_back(histogram[end - 1].size);
    end = layers[layer].begin[end];
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int64_t> EverySize(const SizeHistogram& histogram) {
  std::vector<int64_t> sizes;
  for (const SizeCount& row : histogram) sizes.push_back(row.size);
  return sizes;
}

std::vector<int64_t> PowersOfTwo(int64_t greatest) {
  std::vector<int64_t> sizes{1};
  while (sizes.back() < greatest) sizes.push_back(2 * sizes.back());
  return sizes;
}

std::vector<int64_t> ServingDefault(int64_t greatest) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= 512; size = size < 8 ? 2 * size : size + 8) {
    sizes.push_back(size);
    if (size >= greatest) break;
  }
  return sizes;
}

std::vector<int64_t> Thinned(const std::vector<int64_t>& gears, int64_t most) {
  const auto count = static_cast<int64_t>(gears.size());
  if (count <= most) return gears;
  if (most < 2) return most < 1 ? std::vector<int64_t>() : std::vector<int64_t>{gears.back()};
  std::vector<int64_t> picked;
  for (int64_t i = 0; i < most; ++i) {
    // Rounds to the nearest place. Places are more than one apart, so none is picked twice.
    picked.push_back(gears[(2 * i * (count - 1) + most - 1) / (2 * (most - 1))]);
  }
  return picked;
}

}  // namespace acltape::analyzer::gears
