// An operator of PyTorch that nobody knows (meaning::IsKnownNamespace) is told by the calls of the
// ACL interface that were recorded inside of it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer {

// The calls of an operator, by what a graph that captured it would make of them.
enum class CallsInside : uint8_t {
  kNotRecorded,   // no call of the interface is known to be the leaf's
  kWait,          // the host waits in one of them
  kOtherWork,     // there is work that is no operator, or a call failed
  kHiddenInputs,  // an operator reads memory that is neither an argument nor written before
  kChanging,      // they have other arguments in another call of the same operator
  kRepeatable     // a graph repeats them
};

// Judges the unknown operators of a work of leaves. The work must outlive the object.
class UnknownOperators {
 public:
  explicit UnknownOperators(const Work& work) : work_(work) {}

  // Calls of the adapter's queue belong to the leaf that asked for them. Calls are the same
  // operator if name, numbers and the shapes, strides and types of tensors are equal.
  CallsInside Judge(size_t call);

 private:
  const std::string& KeyOf(int32_t form);
  void FindAlike();

  const Work& work_;
  bool found_alike_ = false;
  std::unordered_map<int32_t, std::string> keys_;               // by form
  std::unordered_map<std::string, std::vector<size_t>> alike_;  // entries of the work by key
  std::unordered_map<std::string, CallsInside> judged_;         // those whose calls agree
  std::unordered_map<size_t, CallsInside> judged_alone_;        // by entry
};

}  // namespace acltape::analyzer
