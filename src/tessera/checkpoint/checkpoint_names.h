#pragma once
/// How the checkpoints of a run are called.

namespace tessera {

/// step-00000020, in OUTPUT/checkpoints; or as Megatron-LM does, iter_0000020 in OUTPUT itself,
/// beside kTrackerFile.
enum class CheckpointNames { Step, Iteration };

/// The file that says which iteration was saved last: a number, as in Megatron-LM's folders. It is
/// for people and scripts: checkpoints are found without it.
inline constexpr const char* kTrackerFile = "latest_checkpointed_iteration.txt";

}  // namespace tessera
