// Debug output of models (section 22 of the rules).
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <memory>

#include "runtime/device/call.h"
#include "runtime/device/capture/task_group.h"
#include "runtime/device/changes.h"
#include "runtime/device/control.h"
#include "runtime/device/thread_state.h"
#include "runtime/device/value_task.h"

using namespace acltape::device;

namespace {

// JSON-06: artificial durations, by what the name of the task contains.
struct DurationRow {
  const char* part;
  double duration;
  double step;
};
constexpr DurationRow kDurations[] = {
    {"FILLER", 0.5, 1},
    {"RECORD", 4.5, 5},
    {"WAIT", 14.5, 15},
    {"", 9.5, 10},
};

const DurationRow& DurationOf(const std::string& name) {
  for (const DurationRow& row : kDurations) {
    if (name.find(row.part) != std::string::npos) return row;
  }
  return kDurations[std::size(kDurations) - 1];
}

bool IsEventOrNotify(TaskKind kind) {
  return kind == TaskKind::kEventRecord || kind == TaskKind::kEventWait ||
         kind == TaskKind::kEventReset || kind == TaskKind::kNotify;
}

// JSON-04.
std::string NameOf(const Model::Node& node, const Task& task) {
  std::string name = task.name;
  if (IsEventOrNotify(task.kind) || (node.internal && node.next_stream == 0)) {
    return name + "_" + std::to_string(task.object_id);
  }
  if (task.kind == TaskKind::kValueWrite || task.kind == TaskKind::kValueWait) {
    char address[32];
    std::snprintf(address, sizeof(address), "_0x%" PRIxPTR,
                  reinterpret_cast<uintptr_t>(ValueOf(task).address));
    name += address;
  }
  return name;
}

const char* TypeName(const Model::Node& node) {
  return node.task.kind == TaskKind::kKernel ? "KERNEL" : node.task.name;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", byte);
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// The argument block in words of 16 hex digits; the last one is filled up with zeros.
std::string HexWords(const Task& kernel) {
  std::string text;
  size_t bytes = ArgumentBytes(kernel);
  const void* block = TakesBytes(kernel) ? kernel.argument : &kernel.argument;
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(block) + i, std::min(sizeof(word), bytes - i));
    char digits[20];
    std::snprintf(digits, sizeof(digits), "%s%016" PRIx64, i == 0 ? "" : " ", word);
    text += digits;
  }
  return text;
}

// JSON-07.
std::string ArgumentsOf(const Model& model, const Model::Node& node, const Task& task,
                        bool with_kernel_args) {
  std::string text = "\"Model Id\": " + std::to_string(model.id()) + ", \"Stream Id\": " +
                     std::to_string(model.hidden_streams[node.hidden].number) +
                     ", \"Task Id\": " + std::to_string(node.sequence) +
                     ", \"Task Type\": " + Quoted(TypeName(node));
  if (node.next_stream != 0) text += ", \"Active Stream Id\": " + std::to_string(node.next_stream);
  if (node.disabled || !node.note.empty()) {
    text += ", \"ExtendInfo\": " + Quoted(node.disabled ? "disabled" : node.note);
  }
  if (task.kind != TaskKind::kKernel) return text;
  uint32_t blocks = node.attributes != nullptr ? node.attributes->blocks : 1;
  aclrtLaunchKernelAttrValue mode{};
  GetKernelAttribute(node, ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE, &mode);
  text += ", \"Numblocks\": " + std::to_string(blocks) + ", \"Task Ration\": 0" +
          ", \"Schem Mode\": " + std::to_string(mode.schemMode) +
          ", \"Kernel Args Size\": " + std::to_string(ArgumentBytes(task));
  if (with_kernel_args) text += ", \"Kernel Args\": " + Quoted(HexWords(task));
  return text;
}

// One trace event per task, sub-graphs included.
void AppendTasks(const Model& model, bool with_kernel_args, std::string* json) {
  std::map<uint32_t, double> time;  // by hidden stream
  for (const Model::Node& node : model.nodes) {
    Task task = node.task.kind == TaskKind::kKernel ? CurrentKernel(node) : node.task;
    std::string name = NameOf(node, task);
    const DurationRow& row = DurationOf(name);
    double& now = time[node.hidden];
    char head[128];
    std::snprintf(
        head, sizeof(head),
        ", \"pid\": \"%d aclGraph\", \"tid\": \"stream%u\", \"ts\": %.1f, \"dur\": %.1f, ",
        getpid(), model.hidden_streams[node.hidden].number, now, row.duration);
    *json += json->empty() ? "" : ",\n";
    *json += "{\"name\": " + Quoted(name) + head + "\"ph\": \"X\", \"args\": {" +
             ArgumentsOf(model, node, task, with_kernel_args) + "}}";
    now += row.step;
    if (node.control == nullptr) continue;
    for (const Model* sub_graph : node.control->SubGraphs()) {
      AppendTasks(*sub_graph, with_kernel_args, json);
    }
  }
}

}  // namespace

// JSON-09.
aclError aclrtCacheLastTaskExtendInfo(const char* const extendInfoPtr, const size_t infoSize) {
  ACLTAPE_CALL("aclrtCacheLastTaskExtendInfo");
  constexpr size_t kMostBytes = 4096;
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(extendInfoPtr, kCall, "extendInfoPtr"));
  if (infoSize == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: infoSize is 0", kCall);
  std::lock_guard lock(CaptureLock());
  auto* model = thread_state.last_model.Get<Model>(HandleKind::kModel);
  if (model == nullptr || model->state() != Model::State::kCapturing) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the newest task of this thread is in no model that is captured or built",
                kCall);
  }
  model->nodes[thread_state.last_node].note.assign(extendInfoPtr, std::min(infoSize, kMostBytes));
  return ACL_SUCCESS;
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t flags) {
  ACLTAPE_CALL("aclmdlRIDebugJsonPrint");
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(path, kCall, "path"));
  if (flags > 1) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags %u is not 0 or 1", kCall, flags);
  }
  std::string json;
  {
    std::lock_guard lock(CaptureLock());  // it may still be captured
    AppendTasks(*model, flags == 1, &json);
  }
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "w"), std::fclose);
  if (file == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s cannot be opened for writing", kCall, path);
  }
  if (std::fprintf(file.get(), "[\n%s\n]\n", json.c_str()) < 0 || std::fflush(file.get()) != 0) {
    return Fail(ACL_ERROR_RT_FILE_WRITE, "%s: %s could not be written", kCall, path);
  }
  return ACL_SUCCESS;
}

// JSON-08. The soft device's log is stderr.
aclError aclmdlRIDebugPrint(aclmdlRI modelRI) {
  ACLTAPE_CALL("aclmdlRIDebugPrint");
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  std::lock_guard lock(CaptureLock());
  std::fprintf(stderr, "acltape soft device: model %u has %zu tasks on %zu streams\n", model->id(),
               model->nodes.size(), model->hidden_streams.size());
  for (const Model::HiddenStream& stream : model->hidden_streams) {
    std::fprintf(stderr, "acltape soft device:   stream %u: %zu tasks\n", stream.number,
                 stream.nodes.size());
  }
  return ACL_SUCCESS;
}
