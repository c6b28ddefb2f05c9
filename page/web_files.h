// The frames of the pages, with their styles and scripts, which page/embed.py puts into the program
// at build time.
#pragma once

#include <string_view>

namespace acltape::page {

struct Frame {
  std::string_view head;  // up to the place of the data
  std::string_view tail;  // the scripts, and the end
};

extern const Frame kReportFrame;  // a trace
extern const Frame kFleetFrame;   // a folder of fleet tables

}  // namespace acltape::page
