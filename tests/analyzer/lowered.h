// Lowers one leaf of a trace that the test writes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::test {

// The first leaf of the trace that `write` writes, lowered; `why` says why not.
class Lowered {
 public:
  explicit Lowered(const std::function<void(TraceBuilder&)>& write) : file_("lowering") {
    {
      TraceBuilder trace(file_.path());
      write(trace);
      trace.Finish();
    }
    reader_ = std::make_unique<storage::Reader>(file_.path());
    program_ = analyzer::LoadProgram(*reader_);
    lowering = analyzer::lowering::Lower(program_, program_.leaves[0], &why);
  }
  std::vector<std::string> Ops() const {
    std::vector<std::string> ops;
    for (const analyzer::lowering::Invocation& invocation : lowering->invocations)
      ops.push_back(invocation.op);
    return ops;
  }
  std::optional<analyzer::lowering::Lowering> lowering;
  std::string why;

 private:
  TemporaryTrace file_;
  std::unique_ptr<storage::Reader> reader_;
  analyzer::Program program_;
};

using Ops = std::vector<std::string>;

// The shapes of a call's tensors: "[2,3] []".
inline std::string TensorShapes(const analyzer::lowering::Invocation& call) {
  std::string text;
  for (const analyzer::lowering::LoweredValue& argument : call.arguments) {
    for (const analyzer::lowering::LoweredTensor& tensor : argument.tensors) {
      text += text.empty() ? "[" : " [";
      for (const int64_t size : tensor.layout.shape) {
        if (text.back() != '[') text += ",";
        text += std::to_string(size);
      }
      text += "]";
    }
  }
  return text;
}

}  // namespace acltape::test
