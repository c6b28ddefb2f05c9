// Dumps: the tensors of each operator go to a function of the program, in chunks, which reads the
// values out of the files that they make up.
//
//   dump_callback
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "acl/acl.h"
#include "acl/acl_dump.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 4096;
constexpr size_t kBytes = kCount * sizeof(float);

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
std::map<std::string, std::string> files;
int ended = 0;

int32_t TakeChunk(const acldumpChunk* chunk, int32_t length) {
  if (chunk == nullptr || sizeof(acldumpChunk) + chunk->bufLen != (size_t)length) return -1;
  pthread_mutex_lock(&mutex);
  std::string& file = files[chunk->fileName];
  const bool follows = chunk->offset == (int64_t)file.size();
  file.append((const char*)chunk->dataBuf, chunk->bufLen);
  ended += chunk->isLastChunk == 1;
  pthread_mutex_unlock(&mutex);
  return follows ? 0 : -1;
}

// A file begins with the length of the message that describes it; the elements come last.
double SumOf(const std::string& file) {
  uint64_t header = 0;
  memcpy(&header, file.data(), sizeof header);
  double sum = 0;
  for (size_t offset = sizeof header + header; offset < file.size(); offset += sizeof(float)) {
    float value;
    memcpy(&value, file.data() + offset, sizeof value);
    sum += value;
  }
  return sum;
}

std::string WriteConfiguration() {
  char path[] = "/tmp/dump_callback_XXXXXX";
  const int descriptor = mkstemp(path);
  CHECK(descriptor >= 0);
  FILE* file = fdopen(descriptor, "w");
  fprintf(file,
          "{\"dump\": {\"dump_path\": \"/tmp\", \"dump_list\": [{}], \"dump_mode\": \"output\", "
          "\"dump_op_switch\": \"on\", \"dump_data\": \"tensor\"}}\n");
  fclose(file);
  return path;
}

}  // namespace

int main() {
  const std::string configuration = WriteConfiguration();
  CHECK_ACL(aclInit(configuration.c_str()));
  CHECK(remove(configuration.c_str()) == 0);
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  CHECK(acldumpGetPath(DATA_DUMP) != nullptr);
  printf("path: %s\n", acldumpGetPath(DATA_DUMP));
  CHECK_ACL(acldumpRegCallback(TakeChunk, 0));

  float* host = (float*)MallocPinned(kBytes);
  void* blocks[3];
  aclTensor* tensors[3];
  for (int i = 0; i < 3; ++i) {
    blocks[i] = MallocDevice(kBytes);
    tensors[i] = MakeVector(kCount, blocks[i]);
  }
  aclScalar* one = MakeScalar(1);
  aclScalar* three = MakeScalar(3);
  for (int64_t i = 0; i < kCount; ++i) host[i] = (float)(i % 16);
  CHECK_ACL(aclrtMemcpyAsync(blocks[0], kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  RUN_OP(stream, aclnnMuls, tensors[0], three, tensors[1]);
  RUN_OP(stream, aclnnAdd, tensors[0], tensors[1], one, tensors[2]);
  CHECK_ACL(aclrtMemcpyAsync(host, kBytes, blocks[2], kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  acldumpUnregCallback();

  double result = 0;
  for (int64_t i = 0; i < kCount; ++i) result += host[i];
  printf("result: %.0f\n", result);
  CHECK(ended == 2);
  for (const auto& entry : files) {
    // folder/type.name.task.stream.time
    const std::string name = entry.first.substr(entry.first.rfind('/') + 1);
    const std::string type = name.substr(0, name.find('.'));
    printf("%s: %.0f\n", type.c_str(), SumOf(entry.second));
  }

  for (aclTensor* tensor : tensors) CHECK_ACL(aclDestroyTensor(tensor));
  for (void* block : blocks) CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclDestroyScalar(one));
  CHECK_ACL(aclDestroyScalar(three));
  CHECK_ACL(aclrtFreeHost(host));
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("dump_callback: passed\n");
  return 0;
}
