// A trace that a new recording replaces. It is moved aside, and removed when the new one is there.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace acltape::storage {

class SetAside {
 public:
  // Judges the path as the name of a new trace (storage/new_file.h). Moves the trace that has the
  // name, if there is one, and the files that belong to it to PATH.replaced (or PATH.replaced.2 and
  // so on, where that name is taken). `reads`: files that are never replaced. Throws Error kUsage
  // if there is something that may not be replaced, kDevice if another process records into it.
  SetAside(const std::string& path, bool overwrite, const std::vector<std::string>& reads);
  // Moves the files back under their names, unless they were dropped or are kept.
  ~SetAside();
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

  bool empty() const { return moved_.empty(); }
  // The place where the trace lies now.
  const std::string& place() const { return place_; }
  // Removes the files: the new trace is whole.
  void Drop() noexcept;
  // Leaves the files where they are.
  void Keep() noexcept { moved_.clear(); }

 private:
  void MoveBack() noexcept;

  std::string place_;
  std::vector<std::pair<std::string, std::string>> moved_;  // from, to; the trace is the first
};

}  // namespace acltape::storage
