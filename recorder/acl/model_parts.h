// Parts of graphs that the program makes by calls of their own: conditions with their cells of
// device memory, sub-graphs of conditional tasks, and streams that are bound to a built model.
#pragma once

#include <cstdint>

namespace acltape::acl_agent {

struct Thread;

// A condition was created: its cell is device memory that no other call allocates.
void AddConditionCell(Thread& thread, uint64_t condition);
// Encodes the cell as an argument after those of the call.
void EncodeConditionCell(Thread& thread, uint64_t condition, bool succeeded);

// A conditional task was added to the graph `model_id`: its sub-graphs get ids.
void AddSubGraphs(Thread& thread, uint64_t params, uint64_t model_id);
// Encodes the numbers of aclmdlRICondTaskParams: handle, type, size, and the ids of the sub-graphs.
void EncodeConditionTask(Thread& thread, uint64_t params, bool succeeded);
// The graph that is executed when this one runs: itself, or the one around a sub-graph.
uint64_t RootGraph(uint64_t model_id);

// Work that is put on a bound stream is a part of the model and no work of the stream.
void BindToModel(uint64_t stream, uint64_t model_id);
void UnbindFromModel(uint64_t stream);
void ForgetBindings(uint64_t model_id);
// The model that the stream is bound to, 0: none. A stream that there was no memory to remember has
// some model, so that nothing of the recorder's own is put on it: it would become a part of the
// program's model.
uint64_t BoundModel(Thread& thread, uint64_t stream);

void ForgetModelPartLocks();

}  // namespace acltape::acl_agent
