// The page that `acltape fleet report -o FILE` writes.
#pragma once

#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "page/fleet_page.h"
#include "storage/new_file.h"

namespace acltape::cli {

class PageOfFleet {
 public:
  // Throws Error kUsage if the path is taken and not to be overwritten, kDevice if its folder
  // cannot be written.
  PageOfFleet(const std::string& path, bool overwrite)
      : file_(path, {.overwrite = overwrite}),
        out_(file_.partial(), std::ios::binary),
        page_(out_) {}

  // Takes a line of the Python module; other lines than those of the page are ignored.
  void Take(const nlohmann::json& said) { page_.Take(said); }
  // Gives the page its name. Throws Error kDevice if it could not be written.
  void Accept();

 private:
  storage::NewFile file_;
  std::ofstream out_;
  page::FleetPage page_;
};

}  // namespace acltape::cli
