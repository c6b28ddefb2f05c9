#include "runtime/opapi/kernels/sequence_lengths.h"

namespace acltape::opapi {

Lengths PackedLengths(const Call& call, int i, int64_t whole) {
  Lengths sums = call.Ints(i);
  if (sums.empty()) call.RejectArg(i, "must hold running lengths for the layout \"TND\"");
  int64_t before = 0;
  for (int64_t& sum : sums) {
    const int64_t length = sum == 0 ? 0 : sum - before;
    if (length < 0 || sum > whole) call.RejectArg(i, "exceeds the tensor");
    if (sum != 0) before = sum;
    sum = length;
  }
  return sums;
}

Lengths BatchLengths(const Call& call, int i, const Lengths& whole) {
  Lengths lengths = i < 0 ? Lengths() : call.Ints(i);
  if (lengths.empty()) return whole;
  if (lengths.size() == 1) lengths.resize(whole.size(), lengths[0]);
  if (lengths.size() < whole.size()) {
    call.RejectArg(i, "has " + std::to_string(lengths.size()) + " entries for " +
                          std::to_string(whole.size()) + " sequences");
  }
  lengths.resize(whole.size());
  for (size_t b = 0; b < whole.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > whole[b]) call.RejectArg(i, "exceeds the tensor");
  }
  return lengths;
}

}  // namespace acltape::opapi
