// The page of a folder of fleet tables: one HTML file that needs no server and no network.
//
//   FleetPage page(file);
//   for (...) page.Take(line);   // what acltape.fleet.page of Python says
//   page.Finish();
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>

#include "page/document.h"

namespace acltape::page {

class FleetPage {
 public:
  // Writes the frame. The stream must outlive the page.
  explicit FleetPage(std::ostream& out) : document_(out, kFleetFrame) {}

  // Writes {"json": name, "value": anything} or {"column": name, "values": [whole numbers]}, and
  // ignores other objects.
  void Take(const nlohmann::json& said);
  // Writes the scripts. Throws Error kDevice when the stream has failed.
  void Finish() { document_.Finish(); }

 private:
  Document document_;
};

}  // namespace acltape::page
