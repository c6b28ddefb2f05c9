// Joins the birth and the death of each buffer into one row, whichever ring brings which first.
//
// Ids are dense and handed out in blocks, so lives are kept in pages of one block: no search and no
// allocation per buffer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "storage/writer.h"

namespace acltape::collector {

class BufferLives {
 public:
  explicit BufferLives(storage::Writer& writer) : writer_(writer) {}

  void Born(const storage::Buffer& buffer);  // free_call and free_ns are ignored
  void Died(int64_t buffer_id, int64_t call_id, int64_t at_ns);
  // Calls named so many bytes of the buffer.
  void Stretched(int64_t buffer_id, int64_t bytes);

  // Writes the rows of living buffers that have none yet, so that a trace whose collector is
  // killed has them. Their rows are replaced when they die.
  void WriteLiving();

  // Deaths whose birth never came: their rows have no address and no size.
  int64_t WriteUnborn();

 private:
  static constexpr int kPageBits = 8;
  enum State : uint8_t { kUnknown = 0, kBorn = 1, kDied = 2, kWritten = 4 };
  struct Page {
    std::array<storage::Buffer, 1 << kPageBits> buffers;
    std::array<uint8_t, 1 << kPageBits> states{};
    int used = 0;
  };

  Page& PageOf(int64_t buffer_id);
  void End(Page& page, int64_t buffer_id);

  storage::Writer& writer_;
  std::unordered_map<int64_t, std::unique_ptr<Page>> pages_;
  std::unordered_map<int64_t, int64_t> stretched_;  // bytes by id
  std::unique_ptr<Page> spare_;                     // the last emptied page, to be used again
  int64_t recent_number_ = -1;
  Page* recent_ = nullptr;
};

}  // namespace acltape::collector
