// Finds the leaf whose gradient a backward node computes.
//
// The autograd engine numbers the nodes that a thread makes, upwards. A node is made just before
// its operator's leaf runs, so a leaf that finds a new number is the node's. When the node runs in
// backward, in whatever thread, it carries its number and the thread that made it.
#pragma once

#include <cstdint>

namespace acltape::torch_plugin {

struct ThreadState;

// The calling thread begins the leaf `call_id`, and its next node will get the number `next`, which
// is another one than at its last leaf.
void NoteForwardCall(ThreadState& state, uint64_t next, uint64_t call_id);

// The leaf of the node with this number, made by this thread (at::RecordFunction's number of it); 0
// when it is not known: none was recorded, or the thread has made many thousand nodes since.
uint64_t ForwardCallOf(uint64_t thread, int64_t node);

}  // namespace acltape::torch_plugin
