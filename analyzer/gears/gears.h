// Capture sizes ("gears"): for which sizes of a varying dimension, a batch or a sequence length,
// graphs are captured when there is no room for all of them.
//
// A step of size s runs on the graph of the least gear g >= s, padded by g - s, or eagerly: always
// above the greatest gear, and below it where padding would cost more. ChooseGears finds the gears
// that minimise the sum over a histogram of sizes, exactly: the gears of an optimum are sizes of
// the histogram, so that it is a choice of segment ends over sorted sizes (dynamic programming),
// and as the cost of a segment is concave in the sense of Monge, each layer takes n log n by divide
// and conquer over the place of the last gear but one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace acltape::analyzer {

struct SizeCount {
  int64_t size = 0;
  int64_t steps = 0;  // that had this size
  bool operator==(const SizeCount&) const = default;
};
using SizeHistogram = std::vector<SizeCount>;  // by size, each once, steps above 0

// Equal sizes added up, in order; sizes without steps left out.
SizeHistogram MakeHistogram(const std::vector<SizeCount>& rows);

// Reads "size,count" lines; a first line without numbers is a header. Throws Error kUsage that
// names file and line, also when there is no line or a size below 1.
SizeHistogram ReadHistogram(const std::string& path);

// Nanoseconds that a step takes more than on a graph of its own size.
struct GearCosts {
  double padding_ns = 0;  // per unit of padding
  double eager_ns = 0;    // of a step that runs eagerly
};

// A step's time as base + slope * size.
struct LineFit {
  double base_ns = 0;
  double slope_ns = 0;
};
struct SizedTime {
  int64_t size = 0;
  double ns = 0;
};
// Least squares over the median time of each size, weighted by its steps. A slope or a base below
// 0, which noise can give, is 0. Precondition: two different sizes.
LineFit FitLine(const std::vector<SizedTime>& times);

// What a histogram costs with a list of gears.
struct GearUse {
  int64_t steps = 0;
  int64_t exact_steps = 0;  // on a graph of their own size
  int64_t padded_steps = 0;
  int64_t eager_steps = 0;
  double padding = 0;  // units of size added, over all steps
  double size = 0;     // units of size of the steps on graphs, without padding
  double cost_ns = 0;  // more than with a graph for every size
};
GearUse EvaluateGears(const SizeHistogram& histogram, const std::vector<int64_t>& gears,
                      const GearCosts& costs);

// The gears that cost least; of equal ones the fewest. At most `most` gears.
std::vector<int64_t> ChooseGears(const SizeHistogram& histogram, const GearCosts& costs,
                                 int64_t most);

// Lists to compare with. Each reaches up to the greatest size, or to its own end before that.
std::vector<int64_t> EverySize(const SizeHistogram& histogram);
std::vector<int64_t> PowersOfTwo(int64_t greatest);
// 1, 2, 4 and the multiples of 8 up to 512: what vLLM captures by default, 67 sizes.
std::vector<int64_t> ServingDefault(int64_t greatest);
// Evenly picked `most` of a list, first and last among them, as serving frameworks thin it.
std::vector<int64_t> Thinned(const std::vector<int64_t>& gears, int64_t most);

}  // namespace acltape::analyzer
