#include "page/column.h"

#include <fmt/core.h>
#include <zlib.h>

#include "storage/error.h"

namespace acltape::page {
namespace {

constexpr size_t kPendingBytes = 1 << 16;

}  // namespace

void AppendVarint(std::string& bytes, uint64_t value) {
  while (value >= 0x80) {
    bytes.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<char>(value));
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t offset = 0; offset < bytes.size(); offset += 3) {
    const size_t given = std::min<size_t>(3, bytes.size() - offset);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < given ? static_cast<uint8_t>(bytes[offset + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      text.push_back(i <= given ? kDigits[group >> (18 - 6 * i) & 63] : '=');
    }
  }
  return text;
}

struct Deflater::Stream {
  z_stream state{};
};

Deflater::Deflater() : stream_(std::make_unique<Stream>()) {
  // Level 6 is zlib's own choice; 9 takes three times as long for two percent.
  if (deflateInit(&stream_->state, 6) != Z_OK) {
    throw Error(ErrorKind::kDevice,
                "zlib could not start to compress the page; is there memory left?");
  }
}

Deflater::~Deflater() { deflateEnd(&stream_->state); }

void Deflater::Run(std::string_view bytes, bool last) {
  z_stream& state = stream_->state;
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  char out[1 << 14];
  int code = Z_OK;
  do {
    state.next_out = reinterpret_cast<Bytef*>(out);
    state.avail_out = sizeof(out);
    code = deflate(&state, last ? Z_FINISH : Z_NO_FLUSH);
    if (code == Z_STREAM_ERROR) {
      throw Error(ErrorKind::kDevice, fmt::format("zlib failed to compress the page ({})", code));
    }
    compressed_.append(out, sizeof(out) - state.avail_out);
  } while (state.avail_out == 0);
}

void Deflater::Add(std::string_view bytes) {
  constexpr size_t kMost = 1 << 30;  // most that zlib counts in 32 bits
  for (size_t offset = 0; offset < bytes.size(); offset += kMost)
    Run(bytes.substr(offset, kMost), false);
}

std::string Deflater::Finish() {
  Run({}, true);
  return std::move(compressed_);
}

void Column::Add(int64_t value) {
  ++count_;
  if (coding_ == Coding::kPlain) {
    AppendVarint(pending_, static_cast<uint64_t>(value));
  } else {
    // Differences wrap around, so that any two numbers have one.
    AppendVarint(pending_, ZigZag(static_cast<int64_t>(static_cast<uint64_t>(value) -
                                                       static_cast<uint64_t>(last_))));
    last_ = value;
  }
  if (pending_.size() >= kPendingBytes) {
    deflater_.Add(pending_);
    pending_.clear();
  }
}

std::string Column::Finish() {
  deflater_.Add(pending_);
  pending_.clear();
  return Base64(deflater_.Finish());
}

}  // namespace acltape::page
