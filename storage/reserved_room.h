// Room on the disk of a trace that is kept free for its last words.
//
// SQLite ends a transaction that meets a full disk, and everything in it is lost. So the files of a
// trace are written through a layer (a VFS of SQLite) that gives back a part of the room and tries
// once more, each time that the disk is full. The writer sees that the room is in use, stops what
// takes most of it, and closes the trace.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

namespace acltape::storage {

class ReservedRoom {
 public:
  // Takes `bytes` on the disk of `path`, but at most half of what is free there. The file has no
  // name, so that nothing is left of it when this process is killed.
  ReservedRoom(const std::string& path, int64_t bytes);
  // No file that was opened through the layer may be open.
  ~ReservedRoom();
  ReservedRoom(const ReservedRoom&) = delete;
  ReservedRoom& operator=(const ReservedRoom&) = delete;

  // The layer, for sqlite3_open_v2.
  const char* vfs() const { return name_.c_str(); }
  int64_t bytes() const { return bytes_; }
  // The disk was full: a part of the room was given back.
  bool in_use() const { return in_use_; }
  // While it is held, nothing is given back: for what the trace can do without.
  void Hold(bool held) { held_ = held; }
  // Gives a part back; false when only the room for the last words is left, or when it is held.
  bool GiveBack();
  void GiveBackAll();

 private:
  int file_ = -1;
  int64_t bytes_ = 0;  // taken
  int64_t left_ = 0;
  bool in_use_ = false;
  bool held_ = false;
  std::string name_;
  sqlite3_vfs layer_{};
};

}  // namespace acltape::storage
