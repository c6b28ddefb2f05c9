// Settings of the process that programs make before they compute: time-outs, options of the runtime
// and of the operator compiler. Here they are kept and told again; the soft
// device computes the same whatever they are.
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/acl_op_compiler.h"
#include "runtime/device/call.h"
#include "runtime/device/device.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

std::atomic<uint64_t> execute_timeout_us{0};  // 0: never set

struct Options {
  std::mutex mutex;
  std::map<int, int64_t> system;  // aclSysParamOpt to value
  std::map<int, std::string> compiler;
};

Options& GetOptions() {
  static Options& options = *new Options;
  return options;
}

aclError CheckSystemOption(aclSysParamOpt option, const char* call) {
  if (option >= ACL_OPT_DETERMINISTIC && option <= ACL_OPT_ENABLE_KERNEL_EARLY_START) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no option %d", call,
              static_cast<int>(option));
}

// Operators are compiled nowhere, so the option that asks for it is off until a program sets it.
std::string CompilerOption(aclCompileOpt option) {
  Options& options = GetOptions();
  std::lock_guard lock(options.mutex);
  auto found = options.compiler.find(option);
  return found != options.compiler.end() ? found->second : "disable";
}

aclError CheckCompilerOption(aclCompileOpt option, const char* call) {
  if (option >= ACL_PRECISION_MODE && option <= ACL_OP_DEBUG_OPTION) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no compile option %d", call,
              static_cast<int>(option));
}

}  // namespace

// Kernels of the soft device have no time limit: a slow machine is no failure.
aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  ACLTAPE_CALL("aclrtSetOpExecuteTimeOut");
  execute_timeout_us.store(uint64_t{timeout} * 1000000);
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout) {
  ACLTAPE_CALL("aclrtSetOpExecuteTimeOutWithMs");
  execute_timeout_us.store(uint64_t{timeout} * 1000);
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  ACLTAPE_CALL("aclrtSetOpExecuteTimeOutV2");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(actualTimeout, kCall, "actualTimeout"));
  execute_timeout_us.store(timeout);
  *actualTimeout = timeout;
  return ACL_SUCCESS;
}

aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs) {
  ACLTAPE_CALL("aclrtGetOpExecuteTimeout");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(timeoutMs, kCall, "timeoutMs"));
  *timeoutMs = static_cast<uint32_t>(execute_timeout_us.load() / 1000);
  return ACL_SUCCESS;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  ACLTAPE_CALL("aclrtSetSysParamOpt");
  ACLTAPE_RETURN_IF_FAILED(CheckSystemOption(opt, kCall));
  Options& options = GetOptions();
  std::lock_guard lock(options.mutex);
  options.system[opt] = value;
  return ACL_SUCCESS;
}

// The option belongs to the process and is 0 until it is set. Contexts have options of their own
// (CTX-09).
aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  ACLTAPE_CALL("aclrtGetSysParamOpt");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  ACLTAPE_RETURN_IF_FAILED(CheckSystemOption(opt, kCall));
  Options& options = GetOptions();
  std::lock_guard lock(options.mutex);
  auto found = options.system.find(opt);
  *value = found != options.system.end() ? found->second : 0;
  return ACL_SUCCESS;
}

aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
  ACLTAPE_CALL("aclSetCompileopt");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  ACLTAPE_RETURN_IF_FAILED(CheckCompilerOption(opt, kCall));
  Options& options = GetOptions();
  std::lock_guard lock(options.mutex);
  options.compiler[opt] = value;
  return ACL_SUCCESS;
}

// The size counts the zero at the end, so it is never 0 for an option that exists.
size_t aclGetCompileoptSize(aclCompileOpt opt) {
  if (CheckCompilerOption(opt, "aclGetCompileoptSize") != ACL_SUCCESS) return 0;
  return CompilerOption(opt).size() + 1;
}

aclError aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) {
  ACLTAPE_CALL("aclGetCompileopt");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  ACLTAPE_RETURN_IF_FAILED(CheckCompilerOption(opt, kCall));
  const std::string text = CompilerOption(opt);
  if (length <= text.size()) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the value needs %zu bytes, there are %zu", kCall,
                text.size() + 1, length);
  }
  std::memcpy(value, text.c_str(), text.size() + 1);
  return ACL_SUCCESS;
}
