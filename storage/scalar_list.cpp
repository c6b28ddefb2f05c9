#include "storage/scalar_list.h"

#include <algorithm>
#include <bit>

#include "storage/json_text.h"

namespace acltape::storage {

bool IsRealDtype(std::string_view dtype) { return dtype.find("float") != std::string_view::npos; }

ScalarTypes::ScalarTypes(std::string_view dtypes) {
  for (size_t from = 0; from <= dtypes.size();) {
    const size_t end = std::min(dtypes.find(',', from), dtypes.size());
    types_.push_back(dtypes.substr(from, end - from));
    from = end + 1;
  }
}

std::string_view ScalarTypes::Of(size_t element) const {
  return types_[std::min(element, types_.size() - 1)];
}

bool ScalarTypes::all_equal() const {
  return std::all_of(types_.begin(), types_.end(),
                     [this](std::string_view type) { return type == types_.front(); });
}

std::string ScalarsText(std::string_view dtypes, const std::vector<int64_t>& values) {
  const ScalarTypes types(dtypes);
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text += ',';
    if (IsRealDtype(types.Of(i))) {
      AppendReal(text, std::bit_cast<double>(values[i]));
    } else {
      AppendInteger(text, values[i]);
    }
  }
  return text + ']';
}

bool ParseScalars(std::string_view dtypes, std::string_view text, std::vector<int64_t>& values) {
  values.clear();
  const ScalarTypes types(dtypes);
  if (text.starts_with('[')) text.remove_prefix(1);
  if (text.ends_with(']')) text.remove_suffix(1);
  std::vector<double> real;
  std::vector<int64_t> whole;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view number = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (IsRealDtype(types.Of(values.size())) &&
        number.find_first_of(".en") != std::string_view::npos) {
      if (!ParseReals(number, real) || real.size() != 1) return false;
      values.push_back(std::bit_cast<int64_t>(real[0]));
    } else {
      if (!ParseIntegers(number, whole) || whole.size() != 1) return false;
      values.push_back(whole[0]);
    }
  }
  return true;
}

}  // namespace acltape::storage
