#include "analyzer/prediction/resource.h"

#include "meaning/acl_operators.h"
#include "meaning/torch_operators.h"

namespace acltape::analyzer::prediction {

streams::Resource ResourceOf(std::string_view op) {
  const std::string_view name = op.substr(0, op.find('.'));
  const meaning::TorchOperator* row = meaning::FindTorchOperator(name, "");
  return row != nullptr ? row->resource : meaning::AclOperatorOf(name).resource;
}

}  // namespace acltape::analyzer::prediction
