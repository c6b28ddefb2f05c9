#include "cli/fleet/page_of_fleet.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "storage/error.h"

namespace acltape::cli {

void PageOfFleet::Accept() {
  page_.Finish();
  out_.close();
  if (!out_) {
    throw Error(ErrorKind::kDevice,
                fmt::format("'{}' cannot be written ({}); choose a place with -o", file_.path(),
                            std::strerror(errno)));
  }
  file_.Accept();
}

}  // namespace acltape::cli
