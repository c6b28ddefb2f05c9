#include "storage/internal_error.h"

#include <fmt/format.h>

namespace acltape {
namespace {

// The path of a file as from the top of the sources, which is known from this file's own.
std::string_view FromTop(std::string_view file) {
  constexpr std::string_view kOwn = "storage/internal_error.cpp";
  std::string_view top = __FILE__;
  if (!top.ends_with(kOwn)) return file;
  top.remove_suffix(kOwn.size());
  if (file.starts_with(top)) file.remove_prefix(top.size());
  return file;
}

}  // namespace

std::string InternalErrorText(std::string_view file, int64_t line, std::string_view what) {
  const std::string place =
      line > 0 ? fmt::format("{}:{}", FromTop(file), line) : std::string(FromTop(file));
  return fmt::format("internal error at {}, please report: {}", place, what);
}

}  // namespace acltape
