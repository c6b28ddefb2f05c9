#include "cli/tables/temporary_folder.h"

#include <cstdlib>
#include <filesystem>

#include "storage/error.h"

namespace acltape::cli {

TemporaryFolder::TemporaryFolder() {
  std::error_code missing;
  const std::filesystem::path place = std::filesystem::temp_directory_path(missing);
  path_ = (place / "acltape_ranks_XXXXXX").string();
  if (missing || mkdtemp(path_.data()) == nullptr) {
    const char* named = std::getenv("TMPDIR");
    const std::string where = missing && named != nullptr ? named : place.string();
    throw Error(ErrorKind::kDevice, "no folder can be made in '" + where +
                                        "'; set TMPDIR to a folder that can be written");
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace acltape::cli
