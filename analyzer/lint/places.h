// The lines of the program from which the calls of a trace come (the table `stack`).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/work/work.h"

namespace acltape::analyzer {

class Places {
 public:
  // Loads the lines. A trace without lines costs one query.
  explicit Places(const Work& work);

  // The id of the place of a call (an index in Work::calls); 0: not known. A call without a place
  // of its own gets the place of a call with the same parent, because both come from one operator
  // of the framework. An allocation is such a call: it is made with locks held, under which no line
  // can be read. Backward work that no Python code called gets the place of its forward operator.
  int32_t Of(size_t call) const { return places_.empty() ? 0 : places_[call]; }
  // The place as text, such as "train.py:17 (forward)". Empty if it is not known.
  std::string Text(size_t call) const;

 private:
  std::vector<int32_t> places_;                     // by call
  std::unordered_map<int32_t, std::string> texts_;  // by place
};

}  // namespace acltape::analyzer
