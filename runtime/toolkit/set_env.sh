# The environment of programs on the soft device, as a toolkit's set_env.sh sets it. Source it:
#
#   . /path/to/sdk/set_env.sh
#
# `acltape env` prints the same for the Python that it is given, with the folders of its libtorch.
acltape_sdk=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && while [ ! -e lib64/libascendcl.so ] && [ "$PWD" != / ]; do cd ..; done && pwd)
if [ ! -e "$acltape_sdk/lib64/libascendcl.so" ]; then
  echo "set_env.sh: the soft device is not where this file lies; source it by its path, in bash." >&2
else
  export ASCEND_TOOLKIT_HOME=$acltape_sdk ASCEND_HOME_PATH=$acltape_sdk ASCEND_OPP_PATH=$acltape_sdk/opp
  export ASCEND_AICPU_PATH=$acltape_sdk TOOLCHAIN_HOME=$acltape_sdk/toolkit
  export ASCENDC_CMAKE_DIR=$acltape_sdk/tikcpp/ascendc_kernel_cmake
  export ACLTAPE_SOFT_DEVICES=${ACLTAPE_SOFT_DEVICES:-8}
  export PATH=$acltape_sdk/bin${PATH:+:$PATH}
  export LD_LIBRARY_PATH=$acltape_sdk/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export PYTHONPATH=$acltape_sdk/python/site-packages${PYTHONPATH:+:$PYTHONPATH}
fi
unset acltape_sdk
