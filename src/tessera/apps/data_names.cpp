#include "tessera/apps/data_names.h"

#include <filesystem>

#include "tessera/apps/names_file.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/token_files/indexed_dataset.h"

namespace tessera {

namespace {

std::string data_path(const std::string& word) {
  std::error_code ignored;
  const bool plain = word.find_first_of("/*?[") == word.npos && !word.empty();
  if (!plain || std::filesystem::exists(word, ignored) || IndexedDataset::exists(word)) return word;
  if (const std::string path = registered(kDataNames, word); !path.empty()) return path;
  if (word.find('.') != word.npos || word.find_first_not_of("0123456789+-eE") == word.npos)
    return word;  // a file that is missing, or a weight
  std::string file;
  const std::vector<std::string> names = registered_names(kDataNames, file);
  if (names.empty()) return word;
  fail(Fault::Usage, "data '", word, "' is no file, and none of the names in '", file,
       "': ", join(names));
}

}  // namespace

std::vector<std::string> data_paths(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) out.push_back(data_path(word));
  return out;
}

}  // namespace tessera
