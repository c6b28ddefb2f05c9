// The signatures of traces that become one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/interned_rows.h"

namespace acltape::storage {

// Objects of the device that arguments of interface calls name by their ids.
enum class HandleKind : uint8_t { kStream, kEvent, kModel, kCommunicator };

// The new ids of one trace.
struct SignatureChanges {
  const IdMap& ops;
  const IdMap& layouts;
  std::function<int64_t(HandleKind kind, int64_t id)> handle;
};

class SignatureRows {
 public:
  explicit SignatureRows(Database& to);

  // Adds the signatures of a trace with their arguments; equal ones are one. `ids` gets the new
  // ids. Throws Error kTrace where a row is none of a recording.
  void Add(const Reader& from, const SignatureChanges& changes, IdMap& ids);

 private:
  Database& to_;
  InternedRows signatures_;
};

// The kind of handle that each argument is, by its position, as the schema of an interface function
// says: "aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)" gives a stream and an event.
std::vector<std::optional<HandleKind>> HandlesOf(const std::string& schema);

}  // namespace acltape::storage
