#pragma once
/// Folders and files that are no model that can be read, and what to do with each.

#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

/// Refuses a folder without a config.json by what it is: a folder of
/// sentence-transformers, a checkpoint of Megatron-LM, files of another format. Nothing of these:
/// it does nothing. Errors: Fault::Data.
void refuse_other_folder(const std::string& folder);

/// Refuses an adapter beside a model: which of the two is meant is not clear. Errors: Fault::Data.
void refuse_adapter_beside_model(const std::string& folder);

/// Whether a folder names a file; also where that is a link that leads nowhere, as where a download
/// was removed: opening it says so.
bool is_named_in(const std::string& folder, const char* name);

/// Whether there is a file of weights that are not read here.
bool has_other_weights(const std::string& folder);

/// Refuses a folder with a config.json and without weights that can be read, by the files of
/// weights that it has. Errors: Fault::Checkpoint.
[[noreturn]] void refuse_without_weights(const std::string& folder);

/// Refuses a pointer of Git LFS, which is where a file is to be. Errors: `fault`.
void require_no_pointer(std::string_view begin_of_file, const std::string& path, Fault fault);

}  // namespace tessera
