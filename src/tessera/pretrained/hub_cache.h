#pragma once
/// Where Hugging Face's programs keep what they have downloaded. It is only read.

#include <string>
#include <string_view>

namespace tessera {

/// The cache in which the bases of adapters are looked up by their names: a program says it before
/// it opens one (apps/model_names.h). Empty: there is none.
void set_hub_root(const std::string& root);
std::string hub_root();

/// The name of the model whose snapshot in a cache `folder` is; empty: it is none.
std::string hub_name(const std::string& folder);

/// The folder of a model in the cache at `root`, by its name ("gpt2", "org/model"): the snapshot of
/// its branch main. Empty: the cache has none, or no config.json of it.
std::string hub_snapshot(const std::string& root, std::string_view name);

/// Whether it can be the name of a model: one word or two with a slash between them, of letters,
/// digits, '-', '_' and '.'.
bool is_hub_name(std::string_view name);

}  // namespace tessera
