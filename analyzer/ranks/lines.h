// The line of the program from which a call of any process comes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "storage/reader.h"

namespace acltape::analyzer::ranks {

class Lines {
 public:
  explicit Lines(const storage::Reader& trace) : trace_(trace) {}

  // "train.py:30" of the call, or else of the innermost call around it that has a line; where none
  // has, as in a thread of autograd, "after train.py:28", of the latest call of its process before
  // it; else "call 12".
  std::string Of(int64_t call_id);
  // "aten::mm (call 12)"; of a call of the device the operator of PyTorch that asked for it.
  std::string Named(int64_t call_id) const;

 private:
  const storage::Reader& trace_;
  std::map<int64_t, std::string> known_;
};

}  // namespace acltape::analyzer::ranks
