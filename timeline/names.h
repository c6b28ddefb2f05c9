// The names of slices: operators, the shapes that they got, modules and tracks of a trace. They are
// looked up one by one, and forgotten when too many are kept.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "storage/database.h"

namespace acltape::timeline {

// The facts that all calls of a signature share.
struct CallForm {
  std::string name;       // "aten::add"
  std::string full_name;  // "aten::add.Tensor"
  std::string dialect;
  std::string inputs;   // "float32[32,64], int64[32]"; long lists end in "and 12 more"
  std::string outputs;  // the outputs, in the same form
};

class CallForms {
 public:
  explicit CallForms(storage::Database& database);
  // Valid until the next call. An unknown signature has the name "unknown".
  const CallForm& Of(int64_t signature_id);

 private:
  std::string TensorText(int64_t layout_id);
  storage::Statement op_;
  storage::Statement arguments_;
  storage::Statement layout_;
  std::unordered_map<int64_t, CallForm> kept_;
};

// Paths of the modules around calls.
class ModulePaths {
 public:
  explicit ModulePaths(storage::Database& database);
  // The path of the innermost module of a scope, empty: none. Valid until the next call.
  const std::string& Of(int64_t scope_id);

 private:
  storage::Statement scope_;
  std::unordered_map<int64_t, std::string> kept_;
};

// True when the trace has a table or view of this name.
bool HasTable(storage::Database& database, std::string_view name);
bool HasColumn(storage::Database& database, std::string_view table, std::string_view column);

}  // namespace acltape::timeline
