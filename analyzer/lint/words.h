// How messages and edits name calls: as the author of the program knows them. A call of PyTorch is
// the operator that the program called, with its line and module; a call of a C program is the
// interface function. Numbers of calls are evidence and stand at the end.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/lint/finding.h"
#include "analyzer/lint/places.h"
#include "analyzer/lint/stretch.h"

namespace acltape::analyzer::lint {

// Stands for a call in a message until Words::Spell puts its name there. Rules see many calls and
// few of them are told, so that a name is looked up for those alone.
inline std::string Named(size_t call) { return '\x01' + std::to_string(call) + '\x02'; }

// "1 execution", "3 executions".
inline std::string Counted(size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

class Words {
 public:
  Words(const Work& work, const Places& places);

  // "aten::item" for a call inside of it, else the function.
  const std::string& Operator(size_t call);
  // "aten::item in net.head at train.py:76 (main)".
  std::string Call(size_t call);
  // Puts names into a message.
  std::string Spell(const std::string& message);
  // " (call 402 aclrtSynchronizeStream, call 403 aclrtMemcpy)".
  std::string Evidence(const std::vector<int64_t>& call_ids) const;
  // The edits as sentences; empty if there are none. `region` is "the step" or "the capture".
  std::string Edits(const std::vector<Edit>& edits, const Stretch& stretch);
  // True if the program is one over PyTorch.
  bool over_torch() const { return over_torch_; }

 private:
  // As Call, with the number of a call that has no line, because an edit has no evidence.
  std::string Numbered(int64_t call_id);

  const Work& work_;
  const Places& places_;
  bool over_torch_ = false;
  std::unordered_map<int64_t, std::string> operators_;  // by call id
  std::unordered_map<int64_t, std::string> scopes_;     // paths of modules and ranges
};

}  // namespace acltape::analyzer::lint
