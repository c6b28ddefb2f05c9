# Generates the sources that register the operators of a table (recorder/torch/hot_ops.txt), in
# `folder`, for the libtorch whose headers are in `include`. Sets `sources` in the caller's scope.
#
# libtorch declares the operator add_.Tensor as the structure add__Tensor in ATen/ops/add_ops.h. An
# operator without such a declaration is left out; at run time it takes the boxed way.
function(acltape_hot_ops table include folder sources)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  set(group_size 64)
  set(generated "")
  set(count 0)
  set(left_out "")
  file(STRINGS ${table} lines REGEX "^(leaf|composite) ")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([a-z]+) ([A-Za-z0-9_]+)\\.?([A-Za-z0-9_]*)$" matched "${line}")
    if(NOT matched)
      message(FATAL_ERROR "${table}: cannot read \"${line}\"; expected: leaf|composite name[.overload]")
    endif()
    set(kind ${CMAKE_MATCH_1})
    set(op ${CMAKE_MATCH_2})
    set(overload ${CMAKE_MATCH_3})
    set(name ${op})
    set(structure ${op})
    if(overload)
      set(name ${op}.${overload})
      set(structure ${op}_${overload})
    endif()
    set(header ATen/ops/${op}_ops.h)
    if(NOT EXISTS ${include}/${header})
      string(REGEX REPLACE "_$" "" base ${op})
      set(header ATen/ops/${base}_ops.h)
    endif()
    set(declared "")
    if(EXISTS ${include}/${header})
      file(STRINGS ${include}/${header} declared REGEX "^struct TORCH_API ${structure} {")
    endif()
    if(NOT declared)
      list(APPEND left_out ${name})
      continue()
    endif()
    math(EXPR group "${count} / ${group_size}")
    set(index ${count})
    math(EXPR count "${count} + 1")
    string(APPEND includes_${group} "#include <${header}>\n")
    if(kind STREQUAL leaf)
      set(target "to.leaves[\"${name}\"] = &HotLeaf")
    else()
      set(target "to.composites[\"${name}\"] = &HotComposite")
    endif()
    string(APPEND body_${group} "  ${target}<at::_ops::${structure}, ${index}>::Register;\n")
  endforeach()
  if(left_out)
    list(JOIN left_out ", " left_out)
    message(STATUS "This libtorch does not declare, so recorded boxed: ${left_out}")
  endif()

  set(declarations "")
  set(calls "")
  if(count GREATER 0)
    math(EXPR last "(${count} - 1) / ${group_size}")
    foreach(group RANGE ${last})
      set(includes "${includes_${group}}")
      set(body "${body_${group}}")
      string(APPEND declarations "void AddHotOps${group}(HotOps& to);\n")
      string(APPEND calls "  AddHotOps${group}(ops);\n")
      file(CONFIGURE OUTPUT ${folder}/hot_ops_${group}.cpp @ONLY CONTENT
"// Generated from hot_ops.txt by cmake/hot_ops.cmake.
#include \"recorder/torch/hot_kernels.h\"

@includes@
namespace acltape::torch_plugin {

void AddHotOps@group@(HotOps& to) {
@body@}

}  // namespace acltape::torch_plugin
")
      list(APPEND generated ${folder}/hot_ops_${group}.cpp)
    endforeach()
  endif()
  file(CONFIGURE OUTPUT ${folder}/hot_ops.cpp @ONLY CONTENT
"// Generated from hot_ops.txt by cmake/hot_ops.cmake.
#include \"recorder/torch/hot_ops.h\"

namespace acltape::torch_plugin {

@declarations@
HotOps ListHotOps() {
  HotOps ops;
@calls@  return ops;
}

}  // namespace acltape::torch_plugin
")
  set(${sources} ${generated} ${folder}/hot_ops.cpp PARENT_SCOPE)
endfunction()
