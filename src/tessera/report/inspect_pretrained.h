#pragma once
/// What `tessera inspect` says of a folder of Hugging Face.

#include <string>

#include "tessera/report/inspect.h"

namespace tessera {

/// Family and task, sizes, tensors, tokenizer, the tasks that it
/// can be trained for, and what whoever begins with it is told. Weights are not read, but the
/// header of their file and tensors that have two names.
///
/// Errors: those of a run that begins with the folder.
Inspection inspect_pretrained(const std::string& folder);

}  // namespace tessera
