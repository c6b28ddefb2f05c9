#include "runtime/hccl/rank_table.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace acltape::hccl {

HcclResult ReadRankTable(const char* path, RankTable* table, std::string* message) {
  struct stat status {};
  std::ifstream file(path);
  if (!file || stat(path, &status) != 0) {
    *message = std::string(path) + ": " + std::strerror(errno);
    return HCCL_E_OPEN_FILE_FAILURE;
  }
  const nlohmann::json root = nlohmann::json::parse(file, nullptr, false);
  const auto servers = root.is_object() ? root.find("server_list") : root.end();
  if (!root.is_object() || servers == root.end() || !servers->is_array()) {
    *message = std::string(path) + " is no rank table: it has no server_list";
    return HCCL_E_PARA;
  }
  for (const nlohmann::json& server : *servers) {
    const auto devices = server.is_object() ? server.find("device") : server.end();
    if (server.is_object() && devices != server.end()) {
      table->ranks += static_cast<uint32_t>(devices->size());
    }
  }
  // A file that is written anew is another job's.
  table->name = "acltape-hccl-table-" + std::to_string(status.st_dev) + "-" +
                std::to_string(status.st_ino) + "-" + std::to_string(status.st_mtim.tv_sec) + "." +
                std::to_string(status.st_mtim.tv_nsec);
  return HCCL_SUCCESS;
}

}  // namespace acltape::hccl
