#include "replayer/bisect/element_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>
#include <utility>

#include "storage/error.h"

namespace acltape::replayer::bisect {
namespace {

constexpr std::pair<script::Outcome::Verdict, std::string_view> kVerdictNames[] = {
    {script::Outcome::Verdict::kGood, "good"},
    {script::Outcome::Verdict::kBad, "bad"},
    {script::Outcome::Verdict::kUnstable, "unstable"},
    {script::Outcome::Verdict::kCannotJudge, "cannot judge"},
};

}  // namespace

std::string ElementText(const script::ElementSet& set) {
  std::string text;
  for (size_t i = 0; i < set.size();) {
    size_t end = i + 1;
    while (end < set.size() && set[end] == set[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(set[i]);
    if (end - i > 1) text += '-' + std::to_string(set[end - 1]);
    i = end;
  }
  return text;
}

script::ElementSet ParseElements(std::string_view text) {
  const auto fail = [&]() -> script::ElementSet {
    throw Error(ErrorKind::kTrace,
                "'" + std::string(text) + "' is no set of elements; they look like 0-41,57.");
  };
  script::ElementSet set;
  const char* next = text.data();
  const char* end = next + text.size();
  const auto number = [&](size_t& value) {
    const auto [rest, error] = std::from_chars(next, end, value);
    next = rest;
    return error == std::errc();
  };
  while (next != end) {
    size_t first = 0;
    if (!number(first)) return fail();
    size_t last = first;
    if (next != end && *next == '-') {
      ++next;
      if (!number(last)) return fail();
    }
    if (last < first || last - first > 100'000'000 || (!set.empty() && first <= set.back())) {
      return fail();
    }
    for (size_t element = first; element <= last; ++element) set.push_back(element);
    if (next == end) break;
    if (*next != ',' || ++next == end) return fail();
  }
  return set;
}

script::ElementSet AllElements(size_t count) {
  script::ElementSet set(count);
  std::iota(set.begin(), set.end(), size_t{0});
  return set;
}

script::ElementSet UnionOf(const script::ElementSet& a, const script::ElementSet& b) {
  script::ElementSet set;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(set));
  return set;
}

script::ElementSet Without(const script::ElementSet& a, const script::ElementSet& b) {
  script::ElementSet set;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(set));
  return set;
}

std::string_view VerdictName(script::Outcome::Verdict verdict) {
  for (const auto& [value, name] : kVerdictNames) {
    if (value == verdict) return name;
  }
  return "unknown";
}

script::Outcome::Verdict ParseVerdict(std::string_view name) {
  for (const auto& [value, text] : kVerdictNames) {
    if (text == name) return value;
  }
  throw Error(ErrorKind::kTrace, "'" + std::string(name) + "' is no verdict of an experiment.");
}

}  // namespace acltape::replayer::bisect
