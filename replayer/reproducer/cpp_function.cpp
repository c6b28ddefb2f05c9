#include "replayer/reproducer/cpp_function.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "acl/acl.h"
#include "acl/invoke/operator_table.h"
#include "replayer/reproducer/cpp_arguments.h"
#include "storage/error.h"
#include "storage/payload.h"

namespace acltape::replayer::reproducer {
namespace {

// Turns a name into a C++ identifier that is not in `taken`: "workspace 1" becomes "workspace_1".
std::string Identifier(const std::string& name, std::set<std::string>& taken) {
  std::string word;
  for (const char c : name) word += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) != 0) word = "m_" + word;
  std::string unique = word;
  for (int number = 2; !taken.insert(unique).second; ++number) {
    unique = word + "_" + std::to_string(number);
  }
  return unique;
}

}  // namespace

CppContents::CppContents(const std::string& file)
    : path_(file), file_(std::fopen(file.c_str(), "wb")) {
  if (file_ == nullptr) {
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot create '{}' ({})", file, std::strerror(errno)));
  }
}

int CppContents::IndexOf(const Script& script, int number) {
  const auto [entry, fresh] = indices_.try_emplace({&script, number}, 0);
  if (!fresh) return entry->second;
  const ScriptContent& content = script.contents[number];
  const Bytes bytes = content.load();
  const std::string digest = storage::DigestOf(bytes->data(), bytes->size());
  const auto [known, first] = by_digest_.try_emplace(digest, static_cast<int>(rows_.size()));
  entry->second = known->second;
  if (!first) return entry->second;
  if (std::fwrite(bytes->data(), 1, bytes->size(), file_.get()) != bytes->size()) {
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot write '{}' ({})", path_, std::strerror(errno)));
  }
  rows_.push_back({content.name, bytes_, static_cast<int64_t>(bytes->size())});
  bytes_ += static_cast<int64_t>(bytes->size());
  return entry->second;
}

std::string CppContents::TableText() const {
  std::string text =
      "// Contents by offset in repro.bin, in bytes.\n"
      "struct Content {\n  const char* name;\n  int64_t offset;\n  int64_t bytes;\n};\n"
      "static const Content kContents[] = {\n";
  for (size_t i = 0; i < rows_.size(); ++i) {
    text += fmt::format("    {{{}, {}, {}}},  // {}\n", QuotedText(rows_[i].name), rows_[i].offset,
                        rows_[i].bytes, i);
  }
  if (rows_.empty()) text += "    {\"none\", 0, 0},\n";
  return text + "};\n";
}

void CppContents::Finish() {
  if (std::fflush(file_.get()) != 0) {
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot write '{}' ({})", path_, std::strerror(errno)));
  }
}

CppFunction::CppFunction(const Script& script, CppContents& contents,
                         const std::function<std::string(int64_t)>& describe_call,
                         std::set<std::string>& headers)
    : script_(script), contents_(contents), describe_call_(describe_call), headers_(headers) {
  NameBlocks();
}

void CppFunction::NameBlocks() {
  std::set<std::string> taken{"device", "results", "a", "Reference", "Suspect", "Clean"};
  for (const ScriptBlock& block : script_.blocks) {
    block_names_.push_back(Identifier(block.name, taken));
  }
}

std::string CppFunction::At(const Spot& spot) const {
  return spot.offset == 0 ? block_names_[spot.block]
                          : fmt::format("{} + {}", block_names_[spot.block], spot.offset);
}

void CppFunction::Line(const std::string& text) { body_ += "  " + text + "\n"; }

std::string CppFunction::Text(const std::string& name, const std::string& comment) {
  body_.clear();
  for (const Operation& operation : script_.operations) {
    std::visit([this](const auto& own) { Print(own); }, operation);
  }
  std::string text = fmt::format("// {}\nstatic Results {}() {{\n", comment, name);
  text += fmt::format(
      "  Device device(/*streams=*/{}, /*events=*/{}, /*graphs=*/{}, "
      "/*groups=*/{});\n",
      std::max(script_.streams, 1), script_.events, script_.graphs, script_.groups);
  for (size_t b = 0; b < script_.blocks.size(); ++b) {
    const ScriptBlock& block = script_.blocks[b];
    text += fmt::format("  [[maybe_unused]] uint8_t* {} = device.Memory({}, {});\n",
                        block_names_[b], std::max<int64_t>(block.bytes, 1), block.fill);
  }
  return text + "  Results results;\n" + body_ + "  device.Synchronize();\n  return results;\n}\n";
}

void CppFunction::Print(const UploadTo& own) {
  if (own.bytes == 0) return;
  Line(fmt::format("device.Upload({}, {}, {}, {});  // {}", At(own.to),
                   contents_.IndexOf(script_, own.content), own.content_offset, own.bytes,
                   script_.contents[own.content].name));
}

void CppFunction::Print(const UploadTogether& own) {
  for (int piece = own.first; piece < own.end; ++piece) Print(script_.pieces[piece]);
}

void CppFunction::Print(const UploadStrided& own) {
  Line(fmt::format("device.UploadStrided({}, {}, {}, {}, {});  // {}", At(own.to),
                   contents_.IndexOf(script_, own.content), DTypeText(own.layout->dtype),
                   SizesText(own.layout->shape), SizesText(own.layout->strides),
                   script_.contents[own.content].name));
}

void CppFunction::Print(const CopyBytes& own) {
  if (own.bytes == 0 || own.to == own.from) return;
  Line(fmt::format("device.Copy({}, {}, {}, /*stream=*/{});", At(own.to), At(own.from), own.bytes,
                   own.stream));
}

void CppFunction::Print(const FillBytes& own) {
  if (own.bytes == 0) return;
  Line(fmt::format("device.Fill({}, {}, {}, /*stream=*/{});", At(own.to), own.value, own.bytes,
                   own.stream));
}

void CppFunction::Print(const Launch& own) {
  const ScriptCall& call = script_.calls[own.call];
  const acl::OperatorInfo* info = acl::FindOperator(call.invocation.op);
  if (info == nullptr) {
    throw Error(ErrorKind::kUsage, "the operator table has no " + call.invocation.op);
  }
  if (info->launch_repeats_args) {
    throw Error(ErrorKind::kUsage,
                call.invocation.op + " has a second phase of its own form, which is not printed");
  }
  headers_.insert(std::string(info->header));
  const AddressText address =
      [this](const analyzer::lowering::LoweredTensor& tensor) -> std::string {
    if (tensor.layout.ElementCount() == 0) return "device.nothing";
    return At({tensor.memory.block(), tensor.layout.byte_offset});
  };
  std::string arguments;
  for (const std::string& argument : ArgumentTexts(*info, call.invocation, address)) {
    arguments += ",\n        " + argument;
  }
  const ScriptBlock& block = script_.blocks[call.workspace];
  Line(fmt::format("{{  // {}", describe_call_(call.call_id)));
  Line("  Arguments a;");
  Line(fmt::format("  RUN({}, device.streams[{}], {}, {}{});", info->name, own.stream,
                   At({call.workspace, call.workspace_offset}),
                   std::max<int64_t>(block.bytes - call.workspace_offset, 0), arguments));
  Line("}");
}

void CppFunction::Print(const RecordEvent& own) {
  Line(fmt::format("CHECK(aclrtRecordEvent(device.events[{}], device.streams[{}]));", own.event,
                   own.stream));
}

void CppFunction::Print(const WaitEvent& own) {
  Line(fmt::format("CHECK(aclrtStreamWaitEvent(device.streams[{}], device.events[{}]));",
                   own.stream, own.event));
}

void CppFunction::Print(const BeginCapture& own) {
  constexpr const char* kModes[] = {"GLOBAL", "THREAD_LOCAL", "RELAXED"};
  static_assert(ACL_MODEL_RI_CAPTURE_MODE_GLOBAL == 0 &&
                ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL == 1 &&
                ACL_MODEL_RI_CAPTURE_MODE_RELAXED == 2);
  Line(fmt::format("// ---- graph {}", own.graph));
  Line(fmt::format("CHECK(aclmdlRICaptureBegin(device.streams[0], ACL_MODEL_RI_CAPTURE_MODE_{}));",
                   kModes[own.mode >= 0 && own.mode <= 2 ? own.mode : 0]));
}

void CppFunction::Print(const EndCapture& own) {
  Line(fmt::format("CHECK(aclmdlRICaptureEnd(device.streams[0], &device.graphs[{}]));", own.graph));
}

void CppFunction::Print(const ExecuteGraph& own) {
  Line(fmt::format("CHECK(aclmdlRIExecuteAsync(device.graphs[{}], device.streams[{}]));", own.graph,
                   own.stream));
}

void CppFunction::Print(const BeginGroup& own) {
  Line(fmt::format("CHECK(aclmdlRICaptureTaskGrpBegin(device.streams[{}]));", own.stream));
}

void CppFunction::Print(const EndGroup& own) {
  Line(fmt::format("CHECK(aclmdlRICaptureTaskGrpEnd(device.streams[{}], &device.groups[{}]));",
                   own.stream, own.group));
}

void CppFunction::Print(const BeginUpdate& own) {
  Line(fmt::format("CHECK(aclmdlRICaptureTaskUpdateBegin(device.streams[{}], device.groups[{}]));",
                   own.stream, own.group));
}

void CppFunction::Print(const EndUpdate& own) {
  Line(fmt::format("CHECK(aclmdlRICaptureTaskUpdateEnd(device.streams[{}]));", own.stream));
}

void CppFunction::Print(const DisableCalls& /*own*/) {
  throw Error(ErrorKind::kUsage,
              "calls that are disabled inside a graph are not printed as C++; leave them out of "
              "the captured calls instead");
}

void CppFunction::Print(const ChurnMemory& own) {
  Line(fmt::format("device.Churn({}, {}u);", own.bytes, own.seed));
}

void CppFunction::Print(const SynchronizeAll& /*own*/) { Line("device.Synchronize();"); }

void CppFunction::Print(const ReadOnHost& own) {
  Print(Observe{own.observation, own.output, own.output + 1});
}

void CppFunction::Print(const Observe& own) {
  Line("device.Synchronize();");
  const int64_t step = script_.observations[own.observation].step;
  for (int output = own.first; output < own.end; ++output) {
    const ScriptOutput& seen = script_.outputs[output];
    const std::string name =
        fmt::format("step {}, {}, output {}", step, describe_call_(seen.call_id), seen.write);
    Line(fmt::format("device.Observe(results, {}, {}, {}, {}, {});", QuotedText(name),
                     At(seen.spot), DTypeText(seen.layout.dtype), SizesText(seen.layout.shape),
                     SizesText(seen.layout.strides)));
  }
}

}  // namespace acltape::replayer::reproducer
