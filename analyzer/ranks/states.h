// Tensors that one operator changes again and again, such as parameters, and the values that it
// left in them. A tensor that it overwrites, whatever was there, is data of a step and no state: it
// is equal on two ranks where their data are, such as the positions of tokens. The clock is the
// collectives of a communicator: a value counts as that of an epoch, which is the number of
// collectives that its process had issued before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/ranks/meetings.h"

namespace acltape::analyzer::ranks {

// A value that a call left in memory.
struct Write {
  int64_t call_id = 0;
  size_t epoch = 0;
  std::string digest;
};

struct State {
  int64_t process_id = 0;
  int64_t storage = 0;
  int64_t bytes = 0;          // bytes of each value
  std::vector<Write> writes;  // in order, the last one of each epoch
};

// A state and its counterparts on other ranks have these in common.
using Form = std::tuple<std::string, std::string, std::string, int64_t>;  // dtype, shape, op, place

struct States {
  std::map<Form, std::map<int64_t, std::vector<std::unique_ptr<State>>>> by_form;  // by process
  // The operator of each call that writes a storage, by process and storage.
  std::map<std::pair<int64_t, int64_t>, std::map<int64_t, std::string>> writers;
  bool has_values = false;  // the trace has values of what operators left
};

// The states of the processes of a communicator. Those in storages that end before its last meeting
// are none.
States LoadStates(const storage::Reader& trace, const Communicator& world);

}  // namespace acltape::analyzer::ranks
