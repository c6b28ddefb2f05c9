// The lines of source that a ring announces, and the rows of the table `stack` made of them.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "recorder/wire/records.h"
#include "storage/writer.h"

namespace acltape::collector {

class Stacks {
 public:
  explicit Stacks(storage::Writer& writer) : writer_(writer) {}

  // False: the record is damaged. A line on its own is written at once, because calls of other
  // rings may name it. A line with callers is written when a call first names it: most lines with
  // callers are only callers themselves.
  bool Take(const wire::PlaceRecord& place, std::string_view file, std::string_view function);
  // A call names the place.
  void Use(uint32_t place_id);

 private:
  struct Node {
    storage::Writer::Frame frame;
    uint32_t outer_id = 0;
    bool users = false;
    bool written = false;
  };
  storage::Writer& writer_;
  std::unordered_map<uint32_t, Node> nodes_;  // lines with callers
};

}  // namespace acltape::collector
