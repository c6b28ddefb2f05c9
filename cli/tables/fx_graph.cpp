#include "cli/tables/fx_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "meaning/recorded_values.h"
#include "storage/scalar_list.h"

namespace acltape::cli {
namespace {

using storage::Argument;
using storage::Direction;
using storage::TensorRef;
using storage::ValueKind;

// "aten::add_.Tensor" -> "add_"; what torch.fx would base a node's name on.
std::string NodeStem(const storage::Op& op) {
  std::string stem = op.name.substr(op.name.rfind(':') + 1);
  for (char& c : stem) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return stem;
}

// The arguments of a schema, in order; its returns come after them in a call's arguments.
struct SchemaArgument {
  std::string name;
  bool keyword_only;  // after "*": goes to kwargs
};

std::vector<SchemaArgument> ParseSchema(const std::string& schema) {
  std::vector<SchemaArgument> arguments;
  const size_t open = schema.find('(');
  const size_t arrow = schema.rfind(") ->");
  if (open == std::string::npos || arrow == std::string::npos) return arguments;
  // Each piece is "Type name", "Type name=default" or "*"; commas inside brackets belong to a type
  // or a default.
  bool keyword_only = false;
  std::string piece;
  int depth = 0;
  for (size_t i = open + 1; i <= arrow; ++i) {
    const char c = schema[i];
    if (i != arrow && (c != ',' || depth != 0)) {
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      piece += c;
      continue;
    }
    const std::string declaration = piece.substr(0, piece.find('='));
    const size_t space = declaration.find_last_of(' ');
    if (declaration.substr(space + 1) == "*") {
      keyword_only = true;
    } else if (!declaration.empty()) {
      arguments.push_back({declaration.substr(space + 1), keyword_only});
    }
    piece.clear();
  }
  return arguments;
}

class Builder {
 public:
  explicit Builder(const storage::Reader& reader) : reader_(reader) {}

  void AddLeaf(const storage::Call& call) {
    const storage::Op& op = reader_.GetOp(call.op_id);
    std::vector<Argument> arguments = reader_.Arguments(call);
    acl_ = op.dialect == "aclnn";
    if (acl_) {
      std::erase_if(arguments, [](const Argument& a) { return a.name == "workspace"; });
    }
    const std::vector<SchemaArgument> schema = ParseSchema(op.schema);
    FxNode node;
    node.call_id = call.call_id;
    node.opcode = "call_function";
    node.target = op.FullName();
    for (const Argument& argument : arguments) {
      const auto position = static_cast<size_t>(argument.position);
      if (position >= schema.size()) {
        // A return, or an op whose schema the trace does not have.
        if (argument.direction != Direction::kOut) Append(node.args, Shown(argument));
      } else if (!schema[position].keyword_only) {
        Append(node.args, Shown(argument));
      } else if (argument.kind != ValueKind::kNone) {
        Append(node.kwargs, argument.name + "=" + Shown(argument));
      }
    }
    node.name = Fresh(NodeStem(op));
    // From here on the tensors that the call wrote or returned are named after it.
    const auto outputs = std::count_if(arguments.begin(), arguments.end(), [](const Argument& a) {
      return a.direction != Direction::kIn;
    });
    int output = 0;
    for (const Argument& argument : arguments) {
      if (argument.direction == Direction::kIn) continue;
      const std::string name = outputs == 1 ? node.name : fmt::format("{}[{}]", node.name, output);
      ++output;
      for (size_t i = 0; i < argument.tensors.size(); ++i) {
        const TensorRef& tensor = argument.tensors[i];
        if (!tensor.defined()) continue;
        Produce(tensor,
                argument.kind == ValueKind::kTensorList ? fmt::format("{}[{}]", name, i) : name,
                node.name);
        Append(node.result, Layout(tensor));
      }
      if (argument.tensors.empty()) {
        Append(node.result, std::string(storage::ValueKindName(argument.kind)));
      }
    }
    unused_.insert(node.name);
    order_.push_back(node.name);
    calls_.push_back(std::move(node));
  }

  std::vector<FxNode> Finish() {
    std::vector<FxNode> nodes = std::move(inputs_);
    std::move(calls_.begin(), calls_.end(), std::back_inserter(nodes));
    FxNode output;
    output.opcode = output.name = output.target = "output";
    for (const std::string& name : order_) {
      if (unused_.count(name) != 0) Append(output.args, name);
    }
    nodes.push_back(std::move(output));
    return nodes;
  }

 private:
  static void Append(std::string& list, const std::string& item) {
    if (!list.empty()) list += ", ";
    list += item;
  }

  std::string Fresh(const std::string& stem) {
    const int number = used_stems_[stem]++;
    return number == 0 ? stem : fmt::format("{}_{}", stem, number);
  }

  std::string Layout(const TensorRef& tensor) const {
    const storage::Layout& layout = reader_.GetLayout(tensor.layout_id);
    return fmt::format("{}[{}]", storage::DTypeName(layout.dtype), fmt::join(layout.shape, ", "));
  }

  void Produce(const TensorRef& tensor, const std::string& name, const std::string& node) {
    by_tensor_[tensor.tensor_id()] = {name, node};
    by_place_[PlaceOf(tensor)] = {name, node};
  }

  // Tensors of PyTorch in one buffer are views of each other. A buffer of an ACL program is a block
  // that the program may have divided: there the address counts, and what was there before is gone.
  std::pair<int64_t, int64_t> PlaceOf(const TensorRef& tensor) const {
    return {tensor.buffer_id, acl_ ? reader_.GetLayout(tensor.layout_id).byte_offset : 0};
  }

  // The name of a tensor: of its own producer, else of the buffer's last one (a view made outside
  // the picked leaves), else of a new input.
  std::string NameOf(const TensorRef& tensor) {
    if (!tensor.defined()) return "None";
    const auto own = by_tensor_.find(tensor.tensor_id());
    const auto place = by_place_.find(PlaceOf(tensor));
    if (place == by_place_.end()) return AddInput(tensor);
    const Producer& producer = acl_ || own == by_tensor_.end() ? place->second : own->second;
    unused_.erase(producer.node);
    return producer.name;
  }

  std::string AddInput(const TensorRef& tensor) {
    const storage::Layout& layout = reader_.GetLayout(tensor.layout_id);
    const bool parameter = (layout.flags & meaning::kTensorParameter) != 0;
    FxNode node;
    node.opcode = parameter ? "get_attr" : "placeholder";
    node.name = fmt::format("{}_{}", parameter ? "param" : "input",
                            ++(parameter ? parameters_ : placeholders_));
    node.target = fmt::format("buffer:{}", tensor.buffer_id);
    node.result = Layout(tensor);
    Produce(tensor, node.name, node.name);
    inputs_.push_back(node);
    return node.name;
  }

  std::string Shown(const Argument& argument) {
    switch (argument.kind) {
      case ValueKind::kNone:
        return "None";
      case ValueKind::kTensor:
        return argument.tensors.empty() ? "None" : NameOf(argument.tensors.front());
      case ValueKind::kTensorList: {
        std::vector<std::string> names;
        for (const TensorRef& tensor : argument.tensors) names.push_back(NameOf(tensor));
        return fmt::format("[{}]", fmt::join(names, ", "));
      }
      case ValueKind::kInt:
      case ValueKind::kMemoryFormat:
      case ValueKind::kLayout:
        return fmt::format("{}", argument.integer);
      case ValueKind::kReal:
        return fmt::format("{}", argument.real);
      case ValueKind::kScalar:
        if (argument.reals.size() == 2) {
          return fmt::format("{}({}, {})", argument.text, argument.reals[0], argument.reals[1]);
        }
        return storage::IsRealDtype(argument.text)
                   ? fmt::format("{}({})", argument.text, argument.real)
                   : fmt::format("{}({})", argument.text, argument.integer);
      case ValueKind::kScalarList:
        return argument.text + " " + storage::ScalarsText(argument.text, argument.integers);
      case ValueKind::kBool:
        return argument.integer != 0 ? "True" : "False";
      case ValueKind::kText:
        return fmt::format("'{}'", argument.text);
      case ValueKind::kIntList:
        return fmt::format("[{}]", fmt::join(argument.integers, ", "));
      case ValueKind::kRealList:
        return fmt::format("[{}]", fmt::join(argument.reals, ", "));
      case ValueKind::kBoolList: {
        std::vector<std::string> words;
        for (const int64_t value : argument.integers) words.push_back(value ? "True" : "False");
        return fmt::format("[{}]", fmt::join(words, ", "));
      }
      case ValueKind::kDtype:
        return fmt::format("torch.{}",
                           storage::DTypeName(static_cast<storage::DType>(argument.integer)));
      case ValueKind::kComplex:
        return argument.reals.size() == 2
                   ? fmt::format("({}{:+}j)", argument.reals[0], argument.reals[1])
                   : "?";
      case ValueKind::kDevice:
      case ValueKind::kOther:
        return argument.text;
    }
    return "?";
  }

  struct Producer {
    std::string name;  // as an argument shows it: "max_1[0]"
    std::string node;
  };
  const storage::Reader& reader_;
  std::unordered_map<int64_t, Producer> by_tensor_;
  std::map<std::pair<int64_t, int64_t>, Producer> by_place_;  // buffer and byte offset
  bool acl_ = false;                                          // the leaf at hand is an ACL operator
  std::map<std::string, int> used_stems_;
  int parameters_ = 0;
  int placeholders_ = 0;
  std::vector<FxNode> inputs_;
  std::vector<FxNode> calls_;
  std::vector<std::string> order_;
  std::set<std::string> unused_;
};

}  // namespace

std::vector<FxNode> BuildFxGraph(const storage::Reader& reader,
                                 const std::vector<storage::Call>& leaves) {
  Builder builder(reader);
  for (const storage::Call& leaf : leaves) builder.AddLeaf(leaf);
  return builder.Finish();
}

}  // namespace acltape::cli
