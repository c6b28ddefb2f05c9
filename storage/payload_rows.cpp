#include "storage/payload_rows.h"

#include <algorithm>

namespace acltape::storage {

void PayloadRows::Add(const std::string& digest, const void* data, size_t bytes,
                      const Compression& compression) {
  const char* piece_data = static_cast<const char*>(data);
  size_t left = bytes;
  int64_t piece = 0;
  do {
    const size_t take = std::min(left, kPayloadPieceBytes);
    const auto packed = Compress(piece_data, take, compression, in_vain_ >= kDoubtAfter);
    in_vain_ = packed ? 0 : std::min(in_vain_ + 1, kDoubtAfter);
    add_.Set<"digest">(digest);
    add_.Set<"piece">(piece++);
    add_.Set<"bytes">(static_cast<int64_t>(take));
    add_.Set<"codec">(std::string_view(packed ? "zstd" : "raw"));
    add_.SetBlob<"data">(packed ? packed->data() : piece_data, packed ? packed->size() : take);
    add_.Run();
    piece_data += take;
    left -= take;
  } while (left > 0);
}

}  // namespace acltape::storage
