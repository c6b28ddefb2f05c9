/* Code that programs share which draw numbers on the device. */
#ifndef RANDOM_TASK_H_
#define RANDOM_TASK_H_

#include <string.h>

#include "acl/acl.h"

static aclrtRandomParaInfo Value(const void* from, uint8_t bytes) {
  aclrtRandomParaInfo made;
  memset(&made, 0, sizeof(made));
  made.size = bytes;
  memcpy(made.valueOrAddr, from, bytes);
  return made;
}

/* So many floats, evenly spread from `low` to below `high`. */
static aclrtRandomNumTaskInfo Uniform(float low, float high, uint64_t seed, uint64_t count,
                                      void* counter, void* result) {
  aclrtRandomNumTaskInfo task;
  memset(&task, 0, sizeof(task));
  task.dataType = ACL_FLOAT;
  task.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
  task.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = Value(&low, 4);
  task.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = Value(&high, 4);
  task.randomResultAddr = result;
  task.randomCounterAddr = counter;
  task.randomSeed = Value(&seed, 8);
  task.randomNum = Value(&count, 8);
  return task;
}

#endif /* RANDOM_TASK_H_ */
