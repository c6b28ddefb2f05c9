// Memory that a captured step uses a second time: buffers that lie where an earlier one lay, and
// calls that share a workspace with an earlier call of their stream. Each can be given memory of
// its own, which changes nothing else.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace acltape::replayer {

struct MemoryReuse {
  enum class What {
    kBuffer,     // of the template step
    kWorkspace,  // with the temporaries of the call
  };
  What what = What::kBuffer;
  int64_t id = 0;    // of the buffer, or of the call
  size_t place = 0;  // of the call that uses the memory again
  // What used the memory before, the last where there are several: again a buffer or a call.
  What over = What::kBuffer;
  int64_t over_id = 0;
  size_t over_place = 0;  // of the call that used it first
};

// Reuses that stay as planned, by id.
struct KeptReuses {
  std::set<int64_t> buffers;
  std::set<int64_t> workspaces;
  bool operator==(const KeptReuses&) const = default;

  bool Contains(const MemoryReuse& reuse) const {
    return (reuse.what == MemoryReuse::What::kBuffer ? buffers : workspaces).count(reuse.id) != 0;
  }
  void Add(const MemoryReuse& reuse) {
    (reuse.what == MemoryReuse::What::kBuffer ? buffers : workspaces).insert(reuse.id);
  }
};

// "41", "workspace:812".
std::string ReuseText(const MemoryReuse& reuse);
// Sets of reuses as text: "all", "none", or words with commas: "41,workspace:812".
std::string KeptReusesText(const std::vector<MemoryReuse>& reuses, const KeptReuses& kept);
// Throws Error kUsage, naming the word and those that there are, when it names none of `reuses`.
KeptReuses ParseKeptReuses(const std::vector<MemoryReuse>& reuses, const std::string& text);

}  // namespace acltape::replayer
