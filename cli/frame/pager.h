// Shows long output through a pager, as git does. What a command prints is held back in memory
// until the command has ended, so that its progress is drawn as usual, an interrupted pager stops
// nothing, and short output comes without a pager.
#pragma once

#include <string>

#include "cli/terminal/screen.h"

namespace acltape::cli {

// The command line of the pager for sh: $ACLTAPE_PAGER, else $PAGER, else `less -FRX` if it is
// installed. Empty when there is none, also when the first of these that is set is empty or "cat".
std::string PagerCommand();

// From its construction to Show, what the process and its children write to stdout is kept.
class PagedOutput {
 public:
  // Without a pager, or where memory for the output cannot be had, nothing is held back.
  PagedOutput(std::string pager, const Screen& screen);
  ~PagedOutput() { Show(); }
  PagedOutput(const PagedOutput&) = delete;
  PagedOutput& operator=(const PagedOutput&) = delete;

  // Writes the output to stdout, through the pager if it has more lines than the screen, and
  // returns when the pager was left. Further calls do nothing.
  void Show();

 private:
  bool FitsScreen() const;
  bool RunPager() const;
  void WriteOut() const;

  std::string pager_;
  Screen screen_;
  int terminal_ = -1;  // the stdout that the process began with
  int kept_ = -1;      // the memory file; -1: nothing is held back
};

}  // namespace acltape::cli
