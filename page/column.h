// Columns of whole numbers as the page carries them: differences, as varints, deflated (RFC 1950),
// in base64. A column of a million numbers that follow each other closely takes some hundred
// kilobytes. page/web/decode.js is the other side.
//
//   Column begins(Column::Coding::kDifference);
//   for (...) begins.Add(call.begin_ns);
//   begins.Finish();  // the base64 text
//
// Only the compressed bytes are kept in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace acltape::page {

// Appends `value` in groups of seven bits, the lowest first; the top bit says that more follow.
void AppendVarint(std::string& bytes, uint64_t value);
// Maps 0, -1, 1, -2, 2 ... to 0, 1, 2, 3, 4 ..., so that small negative numbers stay short.
constexpr uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
// RFC 4648, with padding.
std::string Base64(std::string_view bytes);

// Compresses bytes that are handed over in pieces. Throws Error kDevice if zlib fails.
class Deflater {
 public:
  Deflater();
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void Add(std::string_view bytes);
  // Everything that was added, compressed. Nothing may be added after that.
  std::string Finish();

 private:
  struct Stream;
  void Run(std::string_view bytes, bool last);
  std::unique_ptr<Stream> stream_;
  std::string compressed_;
};

class Column {
 public:
  enum class Coding : uint8_t {
    kPlain,      // each number by itself; none is negative
    kDifference  // the difference to the number before, zigzag
  };
  explicit Column(Coding coding) : coding_(coding) {}

  void Add(int64_t value);
  int64_t count() const { return count_; }
  std::string_view coding_name() const {
    return coding_ == Coding::kPlain ? "plain" : "difference";
  }
  // The column as base64. Nothing may be added after that.
  std::string Finish();

 private:
  Coding coding_;
  int64_t count_ = 0;
  int64_t last_ = 0;
  std::string pending_;  // varints that are not compressed yet
  Deflater deflater_;
};

}  // namespace acltape::page
