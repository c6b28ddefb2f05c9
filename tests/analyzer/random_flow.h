// Random programs with planted edits, for the tests of diffs: every call knows which call of the
// original it is, and results are a function of operators, arguments and inputs, so that a call
// differs exactly when an edit lies before it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::test {

struct FlowCall {
  int uid = 0;              // number in the original; inserted ones have numbers of their own
  int op = 0;               // "aten::op7"
  int argument = 0;         // a host argument
  std::vector<int> inputs;  // uids; negative: content from outside number -1 - input
  bool edited = false;
};
using FlowProgram = std::vector<FlowCall>;

// Calls read one or two of the last results or, one in six, a parameter. `layers` > 0: so many
// equal layers of `calls` calls each, each with its own parameter.
inline FlowProgram RandomFlow(std::mt19937& random, int calls, int layers = 0) {
  FlowProgram program;
  const auto add_stretch = [&](int layer, std::mt19937& of_layer) {
    const int first = static_cast<int>(program.size());
    for (int i = 0; i < calls; ++i) {
      FlowCall call;
      call.uid = static_cast<int>(program.size());
      call.op = static_cast<int>(of_layer() % 12);
      call.argument = static_cast<int>(of_layer() % 3);
      const int inputs = 1 + static_cast<int>(of_layer() % 2);
      for (int k = 0; k < inputs; ++k) {
        const int back = 1 + static_cast<int>(of_layer() % 4);
        const bool outside = of_layer() % 6 == 0;
        const int source = call.uid - back;
        if (outside || source < 0) {
          call.inputs.push_back(-1 - (layers > 0 ? layer : static_cast<int>(of_layer() % 9)));
        } else {
          call.inputs.push_back(layers > 0 && source < first ? std::max(0, first - 1) : source);
        }
        if (layers > 0 && first == 0 && call.inputs.back() == 0 && call.uid == 0) {
          call.inputs.back() = -1;
        }
      }
      program.push_back(call);
    }
  };
  if (layers == 0) {
    add_stretch(0, random);
    return program;
  }
  const auto seed = random();
  for (int layer = 0; layer < layers; ++layer) {
    std::mt19937 of_layer(seed);
    add_stretch(layer, of_layer);
  }
  return program;
}

enum class FlowEdit { kInsert, kDelete, kOperator, kArgument };

// Makes `count` edits, each of another call. Uids of deleted calls go to `deleted`.
inline FlowProgram EditFlow(FlowProgram program, std::mt19937& random, int count,
                            std::vector<int>& deleted) {
  int next_uid = 1000000;
  for (int edit = 0; edit < count; ++edit) {
    const size_t index = random() % program.size();
    FlowCall& call = program[index];
    if (call.edited) {
      --edit;
      continue;
    }
    switch (static_cast<FlowEdit>(random() % 4)) {
      case FlowEdit::kOperator:
        call.op += 12 + static_cast<int>(random() % 3);
        call.edited = true;
        break;
      case FlowEdit::kArgument:
        call.argument += 3;
        call.edited = true;
        break;
      case FlowEdit::kInsert: {
        FlowCall inserted;
        inserted.uid = next_uid++;
        inserted.op = 20;
        inserted.inputs = {call.uid};
        inserted.edited = true;
        const int source = call.uid;
        for (size_t i = index + 1; i < program.size(); ++i) {
          std::replace(program[i].inputs.begin(), program[i].inputs.end(), source, inserted.uid);
        }
        program.insert(program.begin() + static_cast<std::ptrdiff_t>(index) + 1, inserted);
        break;
      }
      case FlowEdit::kDelete: {
        const int gone = call.uid;
        const int instead = call.inputs[0];
        if (gone >= 1000000 || instead >= 1000000) {
          --edit;
          continue;
        }
        deleted.push_back(gone);
        program.erase(program.begin() + static_cast<std::ptrdiff_t>(index));
        for (FlowCall& other : program) {
          std::replace(other.inputs.begin(), other.inputs.end(), gone, instead);
        }
        break;
      }
    }
  }
  return program;
}

// Swaps neighbours that do not depend on each other.
inline void ShuffleFlow(FlowProgram& program, std::mt19937& random, int swaps) {
  for (int i = 0; i < swaps; ++i) {
    const size_t index = random() % (program.size() - 1);
    const auto& inputs = program[index + 1].inputs;
    if (std::find(inputs.begin(), inputs.end(), program[index].uid) == inputs.end()) {
      std::swap(program[index], program[index + 1]);
    }
  }
}

enum class FlowValues { kNone, kDigest, kAll };

// Writes the program; call id i + 1 is call i. Returns the results by uid.
using FlowContent = std::array<float, 4>;
inline std::map<int, FlowContent> WriteFlow(const FlowProgram& program, const std::string& path,
                                            FlowValues values) {
  using Content = FlowContent;
  TraceBuilder trace(path);
  std::map<int, Tensor> tensors;
  std::map<int, Content> contents;
  for (const FlowCall& call : program) {
    std::vector<Value> arguments;
    std::vector<std::pair<Tensor, Content>> fresh;
    uint64_t hash = static_cast<uint64_t>(call.op) * 131 + static_cast<uint64_t>(call.argument);
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      const int input = call.inputs[k];
      if (!tensors.count(input)) {
        tensors.emplace(input, trace.NewTensor({4}));
        const auto base = static_cast<float>(input);
        contents[input] = {base, base + 1, base + 2, base + 3};
        fresh.emplace_back(tensors.at(input), contents[input]);
      }
      arguments.push_back(In("input" + std::to_string(k), tensors.at(input)));
      for (const float value : contents[input]) {
        hash = base::SpreadBits(hash ^ static_cast<uint64_t>(static_cast<int64_t>(value * 64)));
        hash ^= hash >> 31;
      }
    }
    arguments.push_back(Int("argument", call.argument));
    const Tensor out = trace.NewTensor({4});
    tensors[call.uid] = out;
    Content& content = contents[call.uid];
    for (size_t i = 0; i < content.size(); ++i) {
      content[i] = static_cast<float>((hash >> (i * 8)) & 0xFFFF) / 64;
    }
    trace.Call("aten::op" + std::to_string(call.op), arguments, {Out("out", out)});
    const bool payload = values == FlowValues::kAll;
    if (values == FlowValues::kNone) continue;
    for (const auto& [tensor, before] : fresh) {
      trace.Before(tensor, std::vector<float>(before.begin(), before.end()), payload);
    }
    trace.After("out", std::vector<float>(content.begin(), content.end()), payload);
  }
  trace.Finish();
  return contents;
}

}  // namespace acltape::test
