// Settings of dumps (DMP-01), as the object "dump" of a JSON file says them. The program gives the
// file to aclInit or to aclmdlSetDump.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "acl/acl_dump.h"

namespace acltape::device {

struct DumpSettings {
  std::string path;
  bool tensors = false;  // operators write their tensors
  bool inputs = false;
  bool outputs = false;
  bool statistics = false;          // numbers about the tensors, not their elements
  std::vector<std::string> wanted;  // types or names of operators; empty: all
  std::vector<std::string> statistic_names;
  std::vector<acldumpType> kinds;  // for which acldumpGetPath gives the path

  bool Wants(const std::string& type, const std::string& name) const;
  // True for what aclmdlInitDump does not stand beside.
  bool UsesModelDump() const;
};

// Reads the settings of a configuration; without an object "dump" there are none. Fails with
// 100009.
aclError ReadDumpSettings(const nlohmann::json& configuration, const char* call,
                          DumpSettings* settings);

// The part of an operator's name that stands for its type: "Add" of "aclnnAdd".
std::string TypeOfOperator(const char* op);

}  // namespace acltape::device
