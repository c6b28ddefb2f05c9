// Chooses capture sizes ("gears"). A gear is a size of a varying dimension, such as a batch or a
// sequence length, for which a graph is captured. There is not room for a graph of every size.
//
// A step of size s runs on the graph of the least gear g >= s, padded by g - s, or it runs eagerly.
// It runs eagerly above the greatest gear, and where padding would cost more. ChooseGears finds
// gears that exactly minimise the cost over a histogram of sizes. The gears of an optimum are sizes
// of the histogram, so the task is to choose the ends of segments of the sorted sizes (dynamic
// programming). The cost of a segment is concave in the sense of Monge, so each layer takes n log n
// by divide and conquer over the place of the last gear but one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace acltape::analyzer::gears {

struct SizeCount {
  int64_t size = 0;
  int64_t steps = 0;  // steps that had this size
  bool operator==(const SizeCount&) const = default;
};
using SizeHistogram = std::vector<SizeCount>;  // by size; each size once, steps above 0

// Adds up equal sizes, in order. Sizes without steps are left out.
SizeHistogram MakeHistogram(const std::vector<SizeCount>& rows);

// Reads "size,count" lines. A first line without numbers is a header. Throws Error kUsage that
// names file and line, also when there is no line or a size is below 1.
SizeHistogram ReadHistogram(const std::string& path);

// Extra nanoseconds of a step compared with a graph of its own size.
struct GearCosts {
  double padding_ns = 0;  // per unit of padding
  double eager_ns = 0;    // for a step that runs eagerly
};

// The time of a step as base + slope * size.
struct LineFit {
  double base_ns = 0;
  double slope_ns = 0;
};
struct SizedTime {
  int64_t size = 0;
  double ns = 0;
};
// The median of the slopes between the median times of any two sizes, and the median of what is
// left of these times (Theil 1950, Sen 1968), weighted by steps. A few slow steps, such as the
// first ones of a program, do not move the line. A slope or a base below 0, which noise can give,
// becomes 0. Precondition: there are two different sizes.
LineFit FitLine(const std::vector<SizedTime>& times);

// The cost of a histogram with a list of gears.
struct GearUse {
  int64_t steps = 0;
  int64_t exact_steps = 0;  // on a graph of their own size
  int64_t padded_steps = 0;
  int64_t eager_steps = 0;
  double padding = 0;  // units of size added, over all steps
  double size = 0;     // units of size without padding, of the steps on graphs
  double cost_ns = 0;  // extra time compared with a graph for every size
};
GearUse EvaluateGears(const SizeHistogram& histogram, const std::vector<int64_t>& gears,
                      const GearCosts& costs);

// The gears that cost least, at most `most`. Among equal lists it is the shortest.
std::vector<int64_t> ChooseGears(const SizeHistogram& histogram, const GearCosts& costs,
                                 int64_t most);

// Lists for comparison. Each one reaches up to the greatest size, or to its own end before that.
std::vector<int64_t> EverySize(const SizeHistogram& histogram);
std::vector<int64_t> PowersOfTwo(int64_t greatest);
// The sizes 1, 2, 4 and the multiples of 8 up to 512, which vLLM captures by default: 67 sizes.
std::vector<int64_t> ServingDefault(int64_t greatest);
// Picks `most` evenly spaced gears of a list, with the first and the last, as serving frameworks
// do.
std::vector<int64_t> Thinned(const std::vector<int64_t>& gears, int64_t most);

}  // namespace acltape::analyzer::gears
