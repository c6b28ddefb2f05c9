#include "replayer/probe/contents.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "analyzer/calls/acl_uses.h"

namespace acltape::replayer::probe {

using analyzer::AclCallKind;
using analyzer::Work;
using analyzer::lint::Stretch;

namespace {

class Filling {
 public:
  Filling(const Work& work, const Stretch& stretch,
          const std::vector<ProbeObjects::UsedBuffer>& buffers, uint64_t seed)
      : work_(work), stretch_(stretch) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> number(0.0f, 1.0f);
    for (const ProbeObjects::UsedBuffer& used : buffers) {
      std::vector<uint8_t>& bytes = contents_[used.buffer];
      bytes.resize(used.bytes);
      for (size_t offset = 0; offset + sizeof(float) <= bytes.size(); offset += sizeof(float)) {
        const float value = number(random);
        std::memcpy(bytes.data() + offset, &value, sizeof value);
      }
    }
  }

  std::map<int64_t, std::vector<uint8_t>> Run() {
    size_t next = 0;  // call whose fill is looked at next
    for (const storage::Snapshot& snapshot : work_.trace->Snapshots()) {
      const int64_t index = work_.Find(snapshot.call_id);
      if (index < 0) continue;
      const auto call = static_cast<size_t>(index);
      if (call >= stretch_.end) break;
      for (; next < call && next < stretch_.first; ++next) Fill(next);
      Apply(call, snapshot);
    }
    for (; next < stretch_.first; ++next) Fill(next);
    return std::move(contents_);
  }

 private:
  void Put(int64_t buffer, int64_t first, const uint8_t* bytes, size_t count) {
    const auto content = contents_.find(buffer);
    if (content == contents_.end() || first < 0) return;
    const auto offset = static_cast<size_t>(first);
    if (offset >= content->second.size()) return;
    std::memcpy(content->second.data() + offset, bytes,
                std::min(count, content->second.size() - offset));
  }

  void Apply(size_t call, const storage::Snapshot& snapshot) {
    if (!snapshot.has_payload || snapshot.packing != 0) return;
    storage::TensorRef target = snapshot.tensor;
    const bool range = snapshot.position < 0;
    if (call >= stretch_.first && (snapshot.after || !range))
      return;  // the stretch itself wrote this content
    if (!range && !snapshot.after) {
      // The source of a copy from the host: its bytes arrive in the destination.
      const auto kind = work_.form(call).acl_kind();
      if (kind != AclCallKind::kCopy && kind != AclCallKind::kCopyAsync) return;
      const auto arguments = ArgumentsOf(work_, call);
      if (arguments[analyzer::kCopyTo].tensors.empty()) return;
      target = arguments[analyzer::kCopyTo].tensors[0];
    }
    if (contents_.count(target.buffer_id) == 0) return;
    const std::vector<uint8_t> bytes = work_.trace->Payload(snapshot.digest);
    Put(target.buffer_id, work_.trace->GetLayout(target.layout_id).FirstByte(), bytes.data(),
        bytes.size());
  }

  void Fill(size_t call) {
    const auto kind = work_.form(call).acl_kind();
    if (kind != AclCallKind::kFill && kind != AclCallKind::kFillAsync) return;
    if (work_.calls[call].status != 0) return;
    const auto value =
        static_cast<uint8_t>(work_.form(call).Integer(meaning::position::aclrtMemset::kValue));
    work_.VisitAccesses(call, [&](const analyzer::ByteAccess& access) {
      if (!access.write) return;
      const std::vector<uint8_t> bytes(static_cast<size_t>(access.end - access.first), value);
      Put(access.buffer, access.first, bytes.data(), bytes.size());
    });
  }

  const Work& work_;
  const Stretch& stretch_;
  std::map<int64_t, std::vector<uint8_t>> contents_;
};

}  // namespace

std::map<int64_t, std::vector<uint8_t>> ContentsBefore(
    const Work& work, const Stretch& stretch, const std::vector<ProbeObjects::UsedBuffer>& buffers,
    uint64_t seed) {
  return Filling(work, stretch, buffers, seed).Run();
}

}  // namespace acltape::replayer::probe
