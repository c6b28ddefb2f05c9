// Which lines of the program the calls of a trace come from (the table `stack`).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/work/work.h"

namespace acltape::analyzer {

class Places {
 public:
  // A trace without lines costs one query.
  explicit Places(const Work& work);

  // The id of the place of a call, an index in Work::calls; 0: not known. A call without one of its
  // own (an allocation, say, is made with locks held under which no line can be read) has that of a
  // call with the same parent: both come from one operator of the framework. Backward work that no
  // Python called has that of its forward operator.
  int32_t Of(size_t call) const { return places_.empty() ? 0 : places_[call]; }
  // "train.py:17 (forward)"; empty where it is not known.
  std::string Text(size_t call) const;

 private:
  std::vector<int32_t> places_;                     // by call
  std::unordered_map<int32_t, std::string> texts_;  // by place
};

}  // namespace acltape::analyzer
