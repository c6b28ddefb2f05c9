// Lists of scalars (ValueKind::kScalarList) as a trace keeps them: a JSON array of their values.
// Programs hold the bits of a real number as a double, a number without a point in the list of an
// older trace is that too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acltape::storage {

// True of the names of the floating-point types, "float16" and the like.
bool IsRealDtype(std::string_view dtype);

// The dtypes of the elements, which commas separate. The last one stands for all further elements.
class ScalarTypes {
 public:
  explicit ScalarTypes(std::string_view dtypes);

  std::string_view Of(size_t element) const;
  bool all_equal() const;

 private:
  std::vector<std::string_view> types_;  // not empty
};

// "[0.5,2.0,7]"
std::string ScalarsText(std::string_view dtypes, const std::vector<int64_t>& values);

// Reads such a list in place of the content of `values`. Returns false where the text is none.
bool ParseScalars(std::string_view dtypes, std::string_view text, std::vector<int64_t>& values);

}  // namespace acltape::storage
