#pragma once
/// Names of models, as users of Hugging Face give them in place of folders.

#include <string>

namespace tessera {

/// The folder of what `--init-from`, predict or evaluate name: the path itself where it is there;
/// what the user's file of names says ($TESSERA_MODELS, else ~/.config/tessera/models.toml: `name =
/// "folder"` in each line); a model that Hugging Face's programs have downloaded ($HF_HUB_CACHE,
/// $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub).
///
/// What is in none of these stays as it is: whoever opens it says so. Errors: Fault::Usage: a file
/// of names that is damaged, or that TESSERA_MODELS names and is not there.
std::string model_folder(const std::string& path_or_name);

}  // namespace tessera
