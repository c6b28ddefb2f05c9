# The files that are compiled for one vector width of x86-64. To be included by each folder that compiles
# them, because a property of a file holds in one folder.
set(agent_folder ${CMAKE_SOURCE_DIR}/recorder/agent)
set_source_files_properties(${agent_folder}/digest_avx2.cpp PROPERTIES COMPILE_OPTIONS "-O3;-mavx2")
# GCC 12 takes a variable of its own header for uninitialised (GCC's bug 105593).
set_source_files_properties(${agent_folder}/digest_avx512.cpp PROPERTIES
  COMPILE_OPTIONS "-O3;-mavx512f;-Wno-uninitialized;-Wno-maybe-uninitialized")
