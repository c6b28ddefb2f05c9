// Facts about an operator that the plug-in reads from its schema, once per operator and process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace c10 {
class OperatorHandle;
}

namespace acltape::torch_plugin {

// The meaning of a number in an argument.
enum class NumberMeaning : uint8_t { kPlain, kDtype, kLayout, kMemoryFormat };

struct ArgumentInfo {
  NumberMeaning meaning = NumberMeaning::kPlain;
  bool written = false;      // the schema marks it as written
  bool overwritten = false;  // and the old content is not read
  int written_if = -1;       // written, unmarked, when the argument of this index is true
};

struct OpInfo {
  std::string name;
  std::string overload;
  std::string schema;
  std::vector<ArgumentInfo> arguments;
  std::vector<NumberMeaning> return_meanings;
  std::vector<bool> return_kept;  // false: the return aliases a written argument
  bool composite = false;         // has a composite kernel: its leaves are recorded, not itself
  // Its kernel for the adapter's device is written in Python, of operators that are recorded.
  bool python_on_device = false;
  bool view = false;        // moves no data, ever: returns share storage with an argument
  bool allocation = false;  // returns memory without content
  bool random = false;      // its outputs depend on a generator
  // It may write whatever it is given, now or later (meaning::Effect::kExchange).
  bool exchange = false;
  bool marked = false;  // a return that shares an argument's storage is a view, as its schema says
  bool writes = false;  // some argument is written
  // Index of the argument that lets a copy go on after the operator has returned; -1: none.
  int non_blocking = -1;
  int tensor_slots = 0;  // tensor arguments and returns, lists not counted
};

// The description of `op`; lives for ever.
const OpInfo* DescribeOp(const c10::OperatorHandle& op);

}  // namespace acltape::torch_plugin
