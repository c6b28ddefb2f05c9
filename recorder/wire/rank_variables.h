// Environment variables by which launchers of distributed programs tell a process its rank.
#pragma once

namespace acltape::wire {

// PyTorch's launchers; Ascend's (hccl); Open MPI; MPICH and Intel MPI; Slurm.
inline constexpr const char* kRankVariables[] = {"RANK", "RANK_ID", "OMPI_COMM_WORLD_RANK",
                                                 "PMI_RANK", "SLURM_PROCID"};

// Key of the text record by which a process tells its rank.
inline constexpr char kRankKey[] = "process_rank";

}  // namespace acltape::wire
