#pragma once
/// What `tessera inspect PATH` says.

#include <string>

#include "tessera/checkpoint/checkpoint.h"

namespace tessera {

struct Inspection {
  std::string text;  // in lines, ending in a newline
  std::string json;  // docs/reference/files.md
};

/// What there is at `path`: a checkpoint, a folder of them, the OUTPUT of a run, a folder of Hugging
/// Face, a safetensors file, or a graph as --dump-dir writes it. Of what holds tensors it reads
/// headers and manifests only (and of a folder of Hugging Face what describe_pretrained says);
/// nothing is verified beyond them, but for what `judge` says of checkpoints. Of several checkpoints
/// those that are damaged, or that `judge` refuses, are named, and the newest of the others is
/// described.
///
/// Errors: Fault::Checkpoint: nothing of these, or all damaged, naming the file.
Inspection inspect(const std::string& path, const CheckpointJudge& judge = {});

}  // namespace tessera
