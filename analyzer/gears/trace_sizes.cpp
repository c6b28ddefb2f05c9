#include "analyzer/gears/trace_sizes.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "analyzer/graph/variation.h"
#include "analyzer/steps/step_times.h"
#include "meaning/options.h"
#include "storage/error.h"

namespace acltape::analyzer::gears {
namespace {

template <typename Number>
std::optional<Number> Parse(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A dimension as CALL:ARGUMENT:DIMENSION. The argument has the name that variations use.
struct WantedDimension {
  int64_t call_id = 0;
  std::string argument;
  int dimension = 0;
};

std::optional<WantedDimension> ParseDimension(const std::string& text) {
  const size_t first = text.find(':');
  const size_t last = text.rfind(':');
  if (first == std::string::npos || first == last) return std::nullopt;
  const auto call = Parse<int64_t>(std::string_view(text).substr(0, first));
  const auto dimension = Parse<int>(std::string_view(text).substr(last + 1));
  if (!call || !dimension) return std::nullopt;
  return WantedDimension{*call, text.substr(first + 1, last - first - 1), *dimension};
}

// A dimension of a family. Its sizes are factor * symbol + offset.
struct Found {
  const graph::StepFamily* family = nullptr;
  graph::Variation variation;
  size_t symbol = 0;
  graph::DimensionVariation dimension;  // the first of the symbol, or the wanted one
};

std::string Describe(const Work& work, const Found& found) {
  const graph::DimensionVariation& dimension = found.dimension;
  std::string text = graph::SymbolText(dimension.symbol, dimension.factor, dimension.offset) +
                     ": dimension " + std::to_string(dimension.dimension) + " of " +
                     dimension.name + " of " +
                     work.Describe(found.family->Call(0, dimension.place));
  const size_t others = found.variation.symbols[found.symbol].dimensions - 1;
  if (others > 0) text += ", and " + std::to_string(others) + " more";
  return text;
}

bool FindSymbol(const graph::StepFamily& family, const std::string& wanted, Found& found) {
  const std::vector<graph::ShapeSymbol>& symbols = found.variation.symbols;
  if (symbols.empty()) return false;
  if (wanted.empty()) {
    found.symbol = static_cast<size_t>(
        std::max_element(symbols.begin(), symbols.end(),
                         [](const graph::ShapeSymbol& a, const graph::ShapeSymbol& b) {
                           return a.values < b.values;
                         }) -
        symbols.begin());
  } else {
    const auto number =
        wanted[0] == 's' ? Parse<size_t>(std::string_view(wanted).substr(1)) : std::nullopt;
    if (!number || *number >= symbols.size()) return false;
    found.symbol = *number;
  }
  const auto dimension =
      std::find_if(found.variation.dimensions.begin(), found.variation.dimensions.end(),
                   [&](const graph::DimensionVariation& d) {
                     return d.symbol == static_cast<int>(found.symbol);
                   });
  if (dimension == found.variation.dimensions.end()) return false;
  // The symbol's own sizes are those of the first dimension that has it.
  found.family = &family;
  found.dimension = *dimension;
  return true;
}

bool FindDimension(const Work& work, const graph::StepFamily& family, const WantedDimension& wanted,
                   Found& found) {
  const int64_t call = work.Find(wanted.call_id);
  const auto place = std::find(family.calls.begin(), family.calls.end(), call);
  if (call < 0 || place == family.calls.end()) return false;
  for (const graph::DimensionVariation& dimension : found.variation.dimensions) {
    if (dimension.place != static_cast<size_t>(place - family.calls.begin()) % family.places ||
        dimension.name != wanted.argument || dimension.dimension != wanted.dimension) {
      continue;
    }
    found.family = &family;
    found.symbol = static_cast<size_t>(dimension.symbol);
    found.dimension = dimension;
    return true;
  }
  return false;
}

}  // namespace

SizeHistogram TraceSizes::Histogram() const {
  std::vector<SizeCount> rows;
  for (const SizedTime& time : times) rows.push_back({time.size, 1});
  return MakeHistogram(rows);
}

TraceSizes FindTraceSizes(const Work& work, const std::string& wanted) {
  const std::string path = work.trace->path();
  if (work.steps.empty()) {
    throw Error(ErrorKind::kTrace, path +
                                       " has no steps; record it with @steps-from, or give the "
                                       "sizes with @histogram."_cli);
  }
  const std::optional<WantedDimension> place = ParseDimension(wanted);
  const std::vector<graph::StepFamily> families = graph::FindFamilies(work);
  std::vector<const graph::StepFamily*> by_steps;
  by_steps.reserve(families.size());
  for (const graph::StepFamily& family : families) by_steps.push_back(&family);
  std::stable_sort(by_steps.begin(), by_steps.end(),
                   [](const graph::StepFamily* a, const graph::StepFamily* b) {
                     return a->steps.size() > b->steps.size();
                   });
  Found found;
  for (const graph::StepFamily* family : by_steps) {
    found.variation = graph::FindVariation(work, *family);
    if (place ? FindDimension(work, *family, *place, found) : FindSymbol(*family, wanted, found)) {
      break;
    }
  }
  if (found.family == nullptr) {
    throw Error(
        ErrorKind::kUsage,
        wanted.empty()
            ? "no dimension varies between the steps of " + path +
                  ": one capture serves all of a kind; give other sizes with @histogram."_cli
            : "'" + wanted + "' is no dimension that varies between the steps of " + path +
                  ": write s0, or CALL:ARGUMENT:DIMENSION as 'acltape steps' lists them.");
  }
  TraceSizes sizes;
  sizes.dimension = Describe(work, found);
  sizes.places = found.family->places;
  sizes.other_steps = work.steps.size() - found.family->steps.size();
  const graph::ShapeSymbol& symbol = found.variation.symbols[found.symbol];
  const std::vector<int64_t> step_times = StepTimes(work);
  for (size_t i = 0; i < found.family->steps.size(); ++i) {
    sizes.times.push_back({found.dimension.factor * symbol.sizes[i] + found.dimension.offset,
                           static_cast<double>(step_times[found.family->steps[i]])});
  }
  return sizes;
}

GearCosts CostsOf(const TraceSizes& sizes) {
  if (sizes.Histogram().size() < 2) {
    throw Error(ErrorKind::kUsage,
                "all steps have one size, which says nothing of what a size costs; give "
                "@padding-ns and @eager-ns."_cli);
  }
  const LineFit fit = FitLine(sizes.times);
  if (fit.base_ns <= 0) {
    throw Error(ErrorKind::kUsage,
                "the times of the steps do not tell what an eager step loses, because they shrink "
                "to nothing with the size; give @padding-ns and @eager-ns."_cli);
  }
  return {fit.slope_ns, fit.base_ns};
}

}  // namespace acltape::analyzer::gears
