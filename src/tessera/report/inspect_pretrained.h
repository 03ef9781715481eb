#pragma once
/// What `tessera inspect` says of a folder of Hugging Face.

#include <string>

namespace tessera {

/// A description in lines of text: family and task, sizes, tensors, tokenizer, the tasks that it
/// can be trained for, and what whoever begins with it is told. Weights are not read, but the
/// header of their file and tensors that have two names.
///
/// Errors: those of a run that begins with the folder.
std::string describe_pretrained(const std::string& folder);

}  // namespace tessera
