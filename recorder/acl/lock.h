// A lock over a pthread mutex, without the C++ runtime that a preloaded library does not bring
// along.
#pragma once

#include <pthread.h>

namespace acltape::acl_agent {

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace acltape::acl_agent
