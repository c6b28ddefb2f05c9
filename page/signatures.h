// Operators and signatures of the calls that a page shows. Calls with equal operator, scalars and
// layouts have one signature, so its arguments are written once.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "storage/reader.h"

namespace acltape::page {

class Signatures {
 public:
  explicit Signatures(const storage::Reader& trace) : trace_(trace) {}

  // The number of a signature on the page, dense from 0 in order of appearance.
  int64_t NumberOf(int64_t signature_id, int64_t op_id);
  // {"ops": [[name, dialect, whether its calls put work on a stream], ...], "signatures": [[op,
  // [[name, direction, text], ...]], ...],
  //  "without_arguments": N}: the arguments of the last N are left out to keep the page small.
  std::string Json() const;

 private:
  const storage::Reader& trace_;
  std::unordered_map<int64_t, int64_t> numbers_;
  std::unordered_map<int64_t, int64_t> op_numbers_;
  std::vector<int64_t> ops_;                             // op_id by number
  std::vector<std::pair<int64_t, int64_t>> signatures_;  // id and number of its operator
};

// "float32[64, 128]", with strides where they are not those of a row-major tensor.
std::string TensorText(const storage::Layout& layout);

}  // namespace acltape::page
