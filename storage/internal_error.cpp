#include "storage/internal_error.h"

#include <fmt/format.h>

namespace acltape {
namespace {

// The top folders of the sources. Those that hold folders of the same names come first.
constexpr std::string_view kTopFolders[] = {
    "/tests/",   "/bench/", "/acl/",      "/analyzer/", "/base/",     "/cli/",      "/kit/",
    "/meaning/", "/page/",  "/recorder/", "/runtime/",  "/replayer/", "/timeline/", "/storage/"};

// The path of a file as from the top of the sources. Debug information has whole paths; the
// compiler shortens those that it writes into a program (storage/CMakeLists.txt).
std::string_view FromTop(std::string_view file) {
  if (!file.starts_with('/')) return file;
  for (const std::string_view folder : kTopFolders) {
    const size_t place = file.rfind(folder);
    if (place != std::string_view::npos) return file.substr(place + 1);
  }
  return file;
}

}  // namespace

std::string InternalErrorText(std::string_view file, int64_t line, std::string_view what) {
  const std::string place =
      line > 0 ? fmt::format("{}:{}", FromTop(file), line) : std::string(FromTop(file));
  return fmt::format("internal error at {}, please report: {}", place, what);
}

}  // namespace acltape
