#include "cli/frame/version.h"

#include "generated/cli/frame/commit.h"

namespace acltape::cli {

std::string VersionNumber() { return ACLTAPE_VERSION; }

std::string VersionDate() { return ACLTAPE_COMMIT_DATE; }

std::string VersionText() {
  std::string text = "acltape " + VersionNumber();
  const std::string commit = ACLTAPE_COMMIT;
  if (commit.empty()) return text;
  return text + " (commit " + commit + (ACLTAPE_UNCLEAN != 0 ? ", from an unclean tree)" : ")");
}

}  // namespace acltape::cli
