#include "replayer/script/memory_reuse.h"

#include <algorithm>

#include "meaning/options.h"
#include "replayer/script/word_list.h"
#include "storage/error.h"

namespace acltape::replayer::script {

std::string ReuseText(const MemoryReuse& reuse) {
  const std::string id = std::to_string(reuse.id);
  return reuse.what == MemoryReuse::What::kBuffer ? id : "workspace:" + id;
}

std::string KeptReusesText(const std::vector<MemoryReuse>& reuses, const KeptReuses& kept) {
  std::string text;
  bool all = true;
  for (const MemoryReuse& reuse : reuses) {
    if (!kept.Contains(reuse)) {
      all = false;
    } else {
      text += (text.empty() ? "" : ",") + ReuseText(reuse);
    }
  }
  return all ? "all" : text.empty() ? "none" : text;
}

KeptReuses ParseKeptReuses(const std::vector<MemoryReuse>& reuses, const std::string& text) {
  constexpr size_t kShown = 20;
  KeptReuses kept;
  if (text == "none") return kept;
  for (const std::string& word : WordsOf(text)) {
    bool found = false;
    for (const MemoryReuse& reuse : reuses) {
      if (text != "all" && ReuseText(reuse) != word) continue;
      kept.Add(reuse);
      found = true;
    }
    if (found || text == "all") continue;
    std::string known;
    for (size_t i = 0; i < std::min(reuses.size(), kShown); ++i) {
      known += (i == 0 ? "" : ", ") + ReuseText(reuses[i]);
    }
    if (reuses.size() > kShown) known += ", ...";
    throw Error(ErrorKind::kUsage,
                "@share-memory "_cli + word +
                    ": nothing of this name lies on memory that the step used before; what does "
                    "is " +
                    (known.empty() ? "nothing" : known));
  }
  return kept;
}

}  // namespace acltape::replayer::script
