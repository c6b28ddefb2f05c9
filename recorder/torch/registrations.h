// Registrations of the plug-in with the dispatcher. All are taken back when one of them fails, so
// that a libtorch that does not fit leaves the program as it was.
#pragma once

#include <torch/library.h>

#include <memory>
#include <vector>

namespace acltape::torch_plugin {

class Registrations {
 public:
  // A library for kernels of `key` in `name_space`. The object owns it.
  torch::Library& Add(const char* name_space, c10::DispatchKey key) {
    libraries_.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, name_space, key,
                                                          __FILE__, __LINE__));
    return *libraries_.back();
  }

  // The kernels stay for ever: operators run until the very end of the process.
  void Keep() {
    for (auto& library : libraries_) (void)library.release();
    libraries_.clear();
  }

 private:
  std::vector<std::unique_ptr<torch::Library>> libraries_;
};

}  // namespace acltape::torch_plugin
