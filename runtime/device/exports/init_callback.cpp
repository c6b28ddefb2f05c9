// Callbacks of the initialisation (section 2 of the rules).
#include "runtime/device/call.h"
#include "runtime/device/init_callbacks.h"

using namespace acltape::device;

namespace acltape::device {

// Never destroyed: destructors of libraries take their functions away at exit (INIT-09).
RegisteredCallbacks<aclInitCallbackFunc>& InitCallbacks() {
  static auto& callbacks = *new RegisteredCallbacks<aclInitCallbackFunc>;
  return callbacks;
}

RegisteredCallbacks<aclFinalizeCallbackFunc>& FinalizeCallbacks() {
  static auto& callbacks = *new RegisteredCallbacks<aclFinalizeCallbackFunc>;
  return callbacks;
}

aclError CallInitCallbacks(const std::string& configuration) {
  for (const auto& entry : InitCallbacks().All()) {
    ACLTAPE_RETURN_IF_FAILED(
        entry.function(configuration.c_str(), configuration.size(), entry.user_data));
  }
  return ACL_SUCCESS;
}

aclError CallFinalizeCallbacks() {
  aclError first = ACL_SUCCESS;
  for (const auto& entry : FinalizeCallbacks().All()) {
    const aclError code = entry.function(entry.user_data);
    if (first == ACL_SUCCESS) first = code;
  }
  return first;
}

}  // namespace acltape::device

namespace {

template <typename Function>
aclError RegisterCallback(RegisteredCallbacks<Function>& callbacks, aclRegisterCallbackType type,
                          Function function, void* user_data, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(reinterpret_cast<void*>(function), call, "cbFunc"));
  if (callbacks.Add({type, function, user_data})) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INTERNAL_ERROR, "%s: type %d has a function already", call,
              static_cast<int>(type));
}

template <typename Function>
aclError UnregisterCallback(RegisteredCallbacks<Function>& callbacks, aclRegisterCallbackType type,
                            Function function, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(reinterpret_cast<void*>(function), call, "cbFunc"));
  if (callbacks.Remove(type, function)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INTERNAL_ERROR, "%s: type %d does not have this function", call,
              static_cast<int>(type));
}

}  // namespace

aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc,
                                 void* userData) {
  ACLTAPE_CALL("aclInitCallbackRegister");
  ACLTAPE_RETURN_IF_FAILED(RegisterCallback(InitCallbacks(), type, cbFunc, userData, kCall));
  // A library that is loaded late is called at once. The result of its function is ignored.
  std::string configuration;
  if (IsInitialised(&configuration)) {
    cbFunc(configuration.c_str(), configuration.size(), userData);
  }
  return ACL_SUCCESS;
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc) {
  ACLTAPE_CALL("aclInitCallbackUnRegister");
  return UnregisterCallback(InitCallbacks(), type, cbFunc, kCall);
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc,
                                     void* userData) {
  ACLTAPE_CALL("aclFinalizeCallbackRegister");
  return RegisterCallback(FinalizeCallbacks(), type, cbFunc, userData, kCall);
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
                                       aclFinalizeCallbackFunc cbFunc) {
  ACLTAPE_CALL("aclFinalizeCallbackUnRegister");
  return UnregisterCallback(FinalizeCallbacks(), type, cbFunc, kCall);
}
