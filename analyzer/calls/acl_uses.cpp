#include "analyzer/calls/acl_uses.h"

#include "generated/meaning/interface_numbers.h"
#include "meaning/acl_operators.h"

namespace acltape::analyzer {
namespace {

// True for memory in which the function replaces every element without a look at it.
bool IsOverwritten(std::string_view function, const storage::Argument& argument) {
  return argument.position == 0 && argument.direction == storage::Direction::kInOut &&
         meaning::AclOperatorOf(function).overwrites;
}

// True for memory that the function writes only where a flag asks for it, and the flag does not.
bool IsLeftAlone(std::string_view function, const std::vector<storage::Argument>& arguments,
                 const storage::Argument& argument) {
  if (argument.direction == storage::Direction::kIn) return false;
  const meaning::ConditionalOutput* row = meaning::FindConditionalOutput(function, argument.name);
  return row != nullptr && !Holds(meaning::Condition{row->flag}, arguments);
}

template <typename Argument>
bool HasPageableSide(const AclFunction& function, const std::vector<Argument>& arguments) {
  const bool plane = function.kind == AclCallKind::kCopy2dAsync;
  if (!plane && function.kind != AclCallKind::kCopyAsync) return false;
  if (function.detail < 0 || arguments.size() <= static_cast<size_t>(function.detail)) return false;
  namespace copy = meaning::position::aclrtMemcpy;
  namespace rows = meaning::position::aclrtMemcpy2d;
  const bool empty =
      plane ? arguments[rows::kWidth].integer == 0 || arguments[rows::kHeight].integer == 0
            : arguments[copy::kCount].integer == 0;
  if (empty) return false;  // rule CPY-03
  // Memory that the program allocated or pinned through ACL is recorded as a tensor, other memory
  // as a number.
  const auto is_number = [&](size_t position) {
    return arguments[position].tensors.empty() && arguments[position].integer != 0;
  };
  const int64_t kind = arguments[function.detail].integer;
  return (kind == meaning::kAclMemcpyHostToDevice && is_number(kCopyFrom)) ||
         (kind == meaning::kAclMemcpyDeviceToHost && is_number(kCopyTo)) ||
         (kind == meaning::kAclMemcpyDefault && is_number(kCopyTo) != is_number(kCopyFrom));
}

}  // namespace

bool IsWorkspace(const storage::ArgumentValue& argument) { return argument.name == "workspace"; }

bool IsIncidental(const storage::ArgumentValue& argument) {
  return argument.name == "executor" || IsWorkspace(argument);
}

std::vector<ArgumentUse> UsesOfAclCall(std::string_view function,
                                       const std::vector<storage::Argument>& arguments) {
  std::vector<ArgumentUse> uses;
  if (!IsDeviceWork(FindAclFunction(function).kind)) return uses;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const storage::Argument& argument = arguments[a];
    // A kernel reads from its workspace only what it wrote there itself.
    const bool workspace = IsWorkspace(argument);
    const bool reads = argument.direction != storage::Direction::kOut && !workspace &&
                       !IsOverwritten(function, argument);
    const bool writes = (argument.direction != storage::Direction::kIn &&
                         !IsLeftAlone(function, arguments, argument)) ||
                        workspace;
    for (size_t i = 0; i < argument.tensors.size(); ++i) {
      if (argument.tensors[i].buffer_id == 0) continue;
      ArgumentUse use{static_cast<int>(a), static_cast<int>(i), false, workspace};
      if (reads) uses.push_back(use);
      use.write = true;
      if (writes) uses.push_back(use);
    }
  }
  return uses;
}

bool IsPageableCopy(const AclFunction& function, const std::vector<storage::Argument>& arguments) {
  return HasPageableSide(function, arguments);
}

bool IsPageableCopy(const AclFunction& function,
                    const std::vector<storage::SignatureArgument>& arguments) {
  return HasPageableSide(function, arguments);
}

std::vector<ArgumentUse> UsesOfAclLeaf(std::string_view function, LeafKind kind,
                                       const std::vector<storage::Argument>& arguments) {
  std::vector<ArgumentUse> uses = UsesOfAclCall(function, arguments);
  const bool copy = IsCopy(FindAclFunction(function).kind);
  std::erase_if(uses, [&](const ArgumentUse& use) {
    if (use.workspace) return true;
    if (!copy) return false;
    const int position = arguments[use.argument].position;
    return (kind == LeafKind::kSource && position != kCopyTo) ||
           (kind == LeafKind::kHostRead && position != kCopyFrom);
  });
  return uses;
}

}  // namespace acltape::analyzer
