#include "analyzer/diff/flow.h"

#include <algorithm>
#include <array>
#include <functional>

#include "analyzer/diff/form_label.h"
#include "analyzer/graph/hazards.h"
#include "base/hash.h"

namespace acltape::analyzer::diff {
namespace {

class Builder {
 public:
  Builder(const Work& work, const std::vector<storage::Snapshot>& snapshots)
      : work_(work), snapshots_(snapshots) {}

  Flow Build() {
    flow_.work = &work_;
    flow_.labels.reserve(work_.forms.size());
    for (const WorkForm& form : work_.forms) flow_.labels.push_back(LabelForm(work_, form));
    node_of_.assign(work_.size(), -1);
    const std::vector<graph::Hazard> hazards = graph::FindHazards(work_, 0, work_.size());
    size_t next = 0;
    for (size_t call = 0; call < work_.size(); ++call) {
      TakeContents(call);
      raw_.clear();
      for (; next < hazards.size() && hazards[next].target <= call; ++next) {
        if (hazards[next].kind == graph::HazardKind::kRaw) raw_.push_back(&hazards[next]);
      }
      if (work_.form(call).active()) AddNode(call);
    }
    FlowNode end;
    end.call = static_cast<uint32_t>(work_.size());
    end.first_input = static_cast<uint32_t>(flow_.inputs.size());
    flow_.nodes.push_back(end);
    Resolve();
    FindConsumers();
    return std::move(flow_);
  }

 private:
  struct Content {
    int64_t since = -1;  // index of the call before which it was found
    const storage::Snapshot* snapshot = nullptr;
    int32_t external = -1;
  };

  void TakeContents(size_t call) {
    const int64_t id = work_.calls[call].call_id;
    const auto has_come = [&](const storage::Snapshot& snapshot) {
      // Ids of an ACL program's leaves do not grow with their order.
      return work_.dialect == Dialect::kAclLeaves
                 ? work_.Find(snapshot.call_id) <= static_cast<int64_t>(call)
                 : snapshot.call_id <= id;
    };
    results_.clear();
    for (; next_ < snapshots_.size() && has_come(snapshots_[next_]); ++next_) {
      const storage::Snapshot& snapshot = snapshots_[next_];
      if (!snapshot.after) {
        contents_[snapshot.tensor.buffer_id] = {static_cast<int64_t>(call), &snapshot, -1};
      } else if (snapshot.call_id == id) {
        results_.push_back(&snapshot);
      }
    }
  }

  void AddNode(size_t call) {
    const auto number = static_cast<int32_t>(flow_.nodes.size());
    node_of_[call] = number;
    FlowNode node;
    node.call = static_cast<uint32_t>(call);
    node.form = work_.calls[call].form;
    node.first_input = static_cast<uint32_t>(flow_.inputs.size());
    if (work_.forms[node.form].kind == LeafKind::kSource) {
      for (const storage::Snapshot* result : results_) {
        node.content = MixHash(node.content, std::hash<std::string>()(result->digest));
      }
    }
    flow_.nodes.push_back(node);
    const auto buffers = work_.buffers(call);
    for (const FormAccess& access : flow_.labels[node.form].reads) {
      FlowInput input;
      input.access = &access;
      if (static_cast<size_t>(access.slot) < buffers.size()) input.buffer = buffers[access.slot];
      FindSources(input);
      if (input.source.node < 0) input.source.external = ExternalOf(input, number);
      flow_.inputs.push_back(input);
    }
  }

  // The write of the source that touches bytes of the read; null if there is none.
  const FormAccess* WriteOf(size_t source, const FlowInput& input, int32_t& output) const {
    const auto buffers = work_.buffers(source);
    const FormLabel& label = flow_.labels[work_.calls[source].form];
    for (size_t i = 0; i < label.writes.size(); ++i) {
      const FormAccess& write = label.writes[i];
      if (static_cast<size_t>(write.slot) >= buffers.size()) continue;
      if (buffers[write.slot] != input.buffer) continue;
      if (write.first_byte >= input.access->end_byte) continue;
      if (write.end_byte <= input.access->first_byte) continue;
      output = static_cast<int32_t>(i);
      return &write;
    }
    return nullptr;
  }

  void FindSources(FlowInput& input) {
    input.first_other = static_cast<uint32_t>(flow_.other_sources.size());
    const auto content = contents_.find(input.buffer);
    const int64_t since = content == contents_.end() ? -1 : content->second.since;
    for (size_t i = raw_.size(); i-- > 0;) {
      const graph::Hazard& hazard = *raw_[i];
      if (hazard.buffer != input.buffer || static_cast<int64_t>(hazard.source) < since) continue;
      FlowSource source;
      source.node = node_of_[hazard.source];
      const FormAccess* write = WriteOf(hazard.source, input, source.output);
      if (write == nullptr || source.node < 0) continue;
      if (source.node > input.source.node) {
        if (input.source.node >= 0) flow_.other_sources.push_back(input.source);
        input.source = source;
        const int64_t size = storage::DTypeBytes(input.access->layout->dtype);
        input.offset = size == 0 ? 0 : (input.access->first_byte - write->first_byte) / size;
      } else {
        flow_.other_sources.push_back(source);
      }
    }
    input.end_other = static_cast<uint32_t>(flow_.other_sources.size());
  }

  int32_t ExternalOf(FlowInput& input, int32_t reader) {
    const storage::Layout& layout = *input.access->layout;
    // A framework keeps its own pool in one block of the ACL interface, so parts of it are
    // contents.
    const bool parts = work_.dialect != Dialect::kAten;
    Content& content = contents_[input.buffer];
    int32_t* known = &content.external;
    if (parts) {
      known = &parts_.try_emplace({input.buffer, content.since, input.access->first_byte}, -1)
                   .first->second;
    } else {
      const int64_t size = storage::DTypeBytes(layout.dtype);
      input.offset = size == 0 ? 0 : input.access->first_byte / size;
    }
    if (*known < 0) {
      *known = static_cast<int32_t>(flow_.externals.size());
      FlowExternal external;
      external.buffer = input.buffer;
      external.reader = reader;
      external.input = static_cast<int32_t>(flow_.inputs.size());
      external.elements = layout.ElementCount();
      if (content.snapshot != nullptr) external.digest = content.snapshot->digest;
      flow_.externals.push_back(external);
    }
    flow_.externals[*known].parameter |= (layout.flags & meaning::kTensorParameter) != 0;
    return *known;
  }

  // True if a copy has the memory order of its input. Each part of it is then that part of the
  // input.
  static bool KeepsOrder(const storage::Layout& read, const storage::Layout& written) {
    return read.shape == written.shape && read.strides == written.strides;
  }

  // Goes through nodes in order, so that the input of a copy is resolved before the readers of the
  // copy.
  void Resolve() {
    for (FlowInput& input : flow_.inputs) {
      input.resolved = input.source;
      const int32_t node = input.source.node;
      if (node < 0 || input.first_other != input.end_other) continue;
      const FormLabel& label = flow_.label(node);
      if (!label.copies) continue;
      const FlowInput& through = flow_.inputs[flow_.nodes[node].first_input];
      const bool parts = KeepsOrder(*through.access->layout, *label.writes[0].layout);
      if (work_.dialect == Dialect::kAten && !parts &&
          label.writes[0].layout->ElementCount() != input.access->layout->ElementCount()) {
        continue;
      }
      input.resolved = through.resolved;
      input.offset = through.offset + (parts ? input.offset : 0);
      input.copied = true;
    }
  }

  void FindConsumers() {
    std::vector<uint32_t> counts(flow_.nodes.size() + 1);
    const auto visit = [&](auto&& take) {
      for (size_t node = 0; node < flow_.size(); ++node) {
        int32_t slot = 0;
        for (const FlowInput& input : flow_.InputsOf(node)) {
          const FlowConsumer consumer{static_cast<int32_t>(node), slot++};
          if (input.source.node >= 0) take(input.source.node, consumer);
          for (uint32_t i = input.first_other; i < input.end_other; ++i) {
            take(flow_.other_sources[i].node, consumer);
          }
        }
      }
    };
    visit([&](int32_t source, const FlowConsumer&) { ++counts[source + 1]; });
    for (size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
    for (size_t node = 0; node < flow_.nodes.size(); ++node) {
      flow_.nodes[node].first_consumer = counts[node];
    }
    flow_.consumers.resize(counts.back());
    visit([&](int32_t source, const FlowConsumer& consumer) {
      flow_.consumers[counts[source]++] = consumer;
    });
  }

  struct PartHash {
    size_t operator()(const std::array<int64_t, 3>& key) const {
      return MixHash(MixHash(static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])),
                     static_cast<uint64_t>(key[2]));
    }
  };

  const Work& work_;
  const std::vector<storage::Snapshot>& snapshots_;
  size_t next_ = 0;
  std::vector<const storage::Snapshot*> results_;  // results of the current call
  Flow flow_;
  std::vector<int32_t> node_of_;  // by call
  std::vector<const graph::Hazard*> raw_;
  std::unordered_map<int64_t, Content> contents_;  // by buffer
  std::unordered_map<std::array<int64_t, 3>, int32_t, PartHash> parts_;
};

}  // namespace

uint64_t MixHash(uint64_t a, uint64_t b) {
  return base::Avalanche(base::SpreadBits(a) + b + 0x632BE59BD9B4E019u);
}

size_t Flow::FirstNodeFrom(size_t call) const {
  const auto found =
      std::lower_bound(nodes.begin(), nodes.end() - 1, call,
                       [](const FlowNode& node, size_t wanted) { return node.call < wanted; });
  return static_cast<size_t>(found - nodes.begin());
}

Flow BuildFlow(const Work& work, const std::vector<storage::Snapshot>& snapshots) {
  return Builder(work, snapshots).Build();
}

}  // namespace acltape::analyzer::diff
