// Memory that a captured step uses a second time. This is a buffer that lies where an earlier
// buffer lay, or a workspace that a call shares with an earlier call of its stream. Each user can
// instead get memory of its own, which changes nothing else.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace acltape::replayer::script {

struct MemoryReuse {
  enum class What {
    kBuffer,     // a buffer of the template step
    kWorkspace,  // with the temporaries of the call
  };
  What what = What::kBuffer;
  int64_t id = 0;    // id of the buffer or of the call
  size_t place = 0;  // place of the call that uses the memory again
  // The previous user of the memory, again a buffer or a call. If there are several, it is the
  // last.
  What over = What::kBuffer;
  int64_t over_id = 0;
  size_t over_place = 0;  // place of the call that used it first
};

// The reuses that stay as planned, by id.
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

// Returns the name of a reuse, such as "41" or "workspace:812".
std::string ReuseText(const MemoryReuse& reuse);
// Writes a set of reuses as text: "all", "none", or names with commas, such as "41,workspace:812".
std::string KeptReusesText(const std::vector<MemoryReuse>& reuses, const KeptReuses& kept);
// Parses such a text. Throws Error kUsage, with the word and the names that exist, if it names none
// of `reuses`.
KeptReuses ParseKeptReuses(const std::vector<MemoryReuse>& reuses, const std::string& text);

}  // namespace acltape::replayer::script
