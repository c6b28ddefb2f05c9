// Attributes of queues, and routes between queues (section 33 of the rules).
#include "runtime/device/channels/queue_settings.h"

#include "runtime/device/channels/message_queues.h"
#include "runtime/device/plain_object.h"

using namespace acltape::device;

namespace {

constexpr uint32_t kLeastDepth = 2;
constexpr uint32_t kMostDepth = 8192;

aclError SetQueueName(const void* param, size_t bytes, acltdtQueueAttr* attr, const char* call) {
  const char* name = nullptr;
  ACLTAPE_RETURN_IF_FAILED(ReadSetting(param, bytes, &name, call));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(name, call, "the name"));
  const size_t length = strnlen(name, sizeof(attr->name));
  if (length == sizeof(attr->name)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the name has more than %zu bytes", call,
                sizeof(attr->name) - 1);
  }
  std::memcpy(attr->name, name, length + 1);
  return ACL_SUCCESS;
}

aclError SetQueueDepth(const void* param, size_t bytes, acltdtQueueAttr* attr, const char* call) {
  uint32_t depth = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadSetting(param, bytes, &depth, call));
  if (depth < kLeastDepth || depth > kMostDepth) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the depth is %u; valid: %u to %u", call, depth,
                kLeastDepth, kMostDepth);
  }
  attr->depth = depth;
  return ACL_SUCCESS;
}

aclError NoSuchSetting(const char* call, int64_t type) {
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no parameter %lld", call,
              static_cast<long long>(type));
}

// Say which of its two ids a query uses.
bool AsksForSource(const acltdtQueueRouteQueryInfo& info) {
  return info.mode != ACL_TDT_QUEUE_ROUTE_QUERY_DST;
}
bool AsksForDestination(const acltdtQueueRouteQueryInfo& info) {
  return info.mode != ACL_TDT_QUEUE_ROUTE_QUERY_SRC;
}

aclError CheckQuery(const acltdtQueueRouteQueryInfo& info, const char* call) {
  const char* missing = !info.has_mode                                      ? "the mode"
                        : AsksForSource(info) && !info.has_source           ? "the source"
                        : AsksForDestination(info) && !info.has_destination ? "the destination"
                                                                            : nullptr;
  if (missing == nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: %s of the query is not set", call, missing);
}

aclError CheckRouteList(const acltdtQueueRouteList* list, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(list, call, "qRouteList"));
  if (!list->routes.empty()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: the list has no route", call);
}

}  // namespace

acltdtQueueAttr* acltdtCreateQueueAttr(void) { return Plain<acltdtQueueAttr>().Create(); }

aclError acltdtDestroyQueueAttr(const acltdtQueueAttr* attr) {
  ACLTAPE_CALL("acltdtDestroyQueueAttr");
  return DestroyPlain(attr, kCall, "attr");
}

aclError acltdtSetQueueAttr(acltdtQueueAttr* attr, acltdtQueueAttrType type, size_t len,
                            const void* param) {
  ACLTAPE_CALL("acltdtSetQueueAttr");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(attr, kCall, "attr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(param, kCall, "param"));
  if (type == ACL_TDT_QUEUE_NAME_PTR) return SetQueueName(param, len, attr, kCall);
  if (type == ACL_TDT_QUEUE_DEPTH_UINT32) return SetQueueDepth(param, len, attr, kCall);
  return NoSuchSetting(kCall, type);
}

aclError acltdtGetQueueAttr(const acltdtQueueAttr* attr, acltdtQueueAttrType type, size_t len,
                            size_t* paramRetSize, void* param) {
  ACLTAPE_CALL("acltdtGetQueueAttr");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(attr, kCall, "attr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(paramRetSize, kCall, "paramRetSize"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(param, kCall, "param"));
  const char* name = attr->name;
  if (type == ACL_TDT_QUEUE_NAME_PTR) return WriteSetting(name, len, param, paramRetSize, kCall);
  if (type == ACL_TDT_QUEUE_DEPTH_UINT32) {
    return WriteSetting(attr->depth, len, param, paramRetSize, kCall);
  }
  return NoSuchSetting(kCall, type);
}

acltdtQueueRoute* acltdtCreateQueueRoute(uint32_t srcId, uint32_t dstId) {
  return Plain<acltdtQueueRoute>().Create(srcId, dstId, int32_t{kRouteUnbound});
}

aclError acltdtDestroyQueueRoute(const acltdtQueueRoute* route) {
  ACLTAPE_CALL("acltdtDestroyQueueRoute");
  return DestroyPlain(route, kCall, "route");
}

aclError acltdtGetQueueRouteParam(const acltdtQueueRoute* route, acltdtQueueRouteParamType type,
                                  size_t len, size_t* paramRetSize, void* param) {
  ACLTAPE_CALL("acltdtGetQueueRouteParam");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(route, kCall, "route"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(paramRetSize, kCall, "paramRetSize"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(param, kCall, "param"));
  switch (type) {
    case ACL_TDT_QUEUE_ROUTE_SRC_UINT32:
      return WriteSetting(route->source, len, param, paramRetSize, kCall);
    case ACL_TDT_QUEUE_ROUTE_DST_UINT32:
      return WriteSetting(route->destination, len, param, paramRetSize, kCall);
    case ACL_TDT_QUEUE_ROUTE_STATUS_INT32:
      return WriteSetting(route->status, len, param, paramRetSize, kCall);
  }
  return NoSuchSetting(kCall, type);
}

acltdtQueueRouteList* acltdtCreateQueueRouteList(void) {
  return Plain<acltdtQueueRouteList>().Create();
}

aclError acltdtDestroyQueueRouteList(const acltdtQueueRouteList* routeList) {
  ACLTAPE_CALL("acltdtDestroyQueueRouteList");
  return DestroyPlain(routeList, kCall, "routeList");
}

aclError acltdtAddQueueRoute(acltdtQueueRouteList* routeList, const acltdtQueueRoute* route) {
  ACLTAPE_CALL("acltdtAddQueueRoute");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(routeList, kCall, "routeList"));
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(route, kCall, "route"));
  routeList->routes.push_back(*route);
  return ACL_SUCCESS;
}

aclError acltdtGetQueueRoute(const acltdtQueueRouteList* routeList, size_t index,
                             acltdtQueueRoute* route) {
  ACLTAPE_CALL("acltdtGetQueueRoute");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(routeList, kCall, "routeList"));
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(route, kCall, "route"));
  if (index >= routeList->routes.size()) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no route %zu in a list of %zu", kCall, index,
                routeList->routes.size());
  }
  *route = routeList->routes[index];
  return ACL_SUCCESS;
}

size_t acltdtGetQueueRouteNum(const acltdtQueueRouteList* routeList) {
  return ValueOr(
      routeList, "acltdtGetQueueRouteNum", "routeList",
      [](const acltdtQueueRouteList& list) { return list.routes.size(); }, 0);
}

acltdtQueueRouteQueryInfo* acltdtCreateQueueRouteQueryInfo(void) {
  return Plain<acltdtQueueRouteQueryInfo>().Create();
}

aclError acltdtDestroyQueueRouteQueryInfo(const acltdtQueueRouteQueryInfo* info) {
  ACLTAPE_CALL("acltdtDestroyQueueRouteQueryInfo");
  return DestroyPlain(info, kCall, "info");
}

aclError acltdtSetQueueRouteQueryInfo(acltdtQueueRouteQueryInfo* param,
                                      acltdtQueueRouteQueryInfoParamType type, size_t len,
                                      const void* value) {
  ACLTAPE_CALL("acltdtSetQueueRouteQueryInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(param, kCall, "param"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  switch (type) {
    case ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM: {
      int32_t mode = 0;
      ACLTAPE_RETURN_IF_FAILED(ReadSetting(value, len, &mode, kCall));
      if (mode < ACL_TDT_QUEUE_ROUTE_QUERY_SRC || mode > ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST) {
        return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no mode %d", kCall, mode);
      }
      param->mode = static_cast<acltdtQueueRouteQueryMode>(mode);
      param->has_mode = true;
      return ACL_SUCCESS;
    }
    case ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32:
      ACLTAPE_RETURN_IF_FAILED(ReadSetting(value, len, &param->source, kCall));
      param->has_source = true;
      return ACL_SUCCESS;
    case ACL_TDT_QUEUE_ROUTE_QUERY_DST_ID_UINT32:
      ACLTAPE_RETURN_IF_FAILED(ReadSetting(value, len, &param->destination, kCall));
      param->has_destination = true;
      return ACL_SUCCESS;
  }
  return NoSuchSetting(kCall, type);
}

// Each route of the list is tried; its status says whether it is bound.
aclError acltdtBindQueueRoutes(acltdtQueueRouteList* qRouteList) {
  ACLTAPE_CALL("acltdtBindQueueRoutes");
  ACLTAPE_RETURN_IF_FAILED(CheckRouteList(qRouteList, kCall));
  std::vector<QueueRoute> routes;
  for (const acltdtQueueRoute& route : qRouteList->routes) {
    routes.emplace_back(route.source, route.destination);
  }
  const std::vector<const char*> wrong = MessageQueues::Get().Bind(routes);
  aclError code = ACL_SUCCESS;
  for (size_t i = 0; i < wrong.size(); ++i) {
    qRouteList->routes[i].status = wrong[i] == nullptr ? kRouteBound : kRouteUnbound;
    if (wrong[i] == nullptr || code != ACL_SUCCESS) continue;
    code = Fail(ACL_ERROR_INVALID_PARAM, "%s: the route from queue %u to %u is not bound: %s",
                kCall, routes[i].first, routes[i].second, wrong[i]);
  }
  return code;
}

aclError acltdtUnbindQueueRoutes(acltdtQueueRouteList* qRouteList) {
  ACLTAPE_CALL("acltdtUnbindQueueRoutes");
  ACLTAPE_RETURN_IF_FAILED(CheckRouteList(qRouteList, kCall));
  aclError code = ACL_SUCCESS;
  for (acltdtQueueRoute& route : qRouteList->routes) {
    const bool was_bound = MessageQueues::Get().Unbind({route.source, route.destination});
    route.status = kRouteUnbound;
    if (was_bound || code != ACL_SUCCESS) continue;
    code = Fail(ACL_ERROR_INVALID_PARAM, "%s: no route from queue %u to %u is bound", kCall,
                route.source, route.destination);
  }
  return code;
}

// Adds the routes that are bound now to what the list has.
aclError acltdtQueryQueueRoutes(const acltdtQueueRouteQueryInfo* queryInfo,
                                acltdtQueueRouteList* qRouteList) {
  ACLTAPE_CALL("acltdtQueryQueueRoutes");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(queryInfo, kCall, "queryInfo"));
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(qRouteList, kCall, "qRouteList"));
  ACLTAPE_RETURN_IF_FAILED(CheckQuery(*queryInfo, kCall));
  for (const QueueRoute& route : MessageQueues::Get().Routes()) {
    if (AsksForSource(*queryInfo) && route.first != queryInfo->source) continue;
    if (AsksForDestination(*queryInfo) && route.second != queryInfo->destination) continue;
    qRouteList->routes.push_back({route.first, route.second, kRouteBound});
  }
  return ACL_SUCCESS;
}
