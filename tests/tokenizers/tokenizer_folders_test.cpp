/// Folders of tokenizers beside what transformers makes of them, each key and each file changed or
/// left out: tools/golden/tokenizer_folders.py.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "repo_file.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/tokenizers/charsmap.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using FolderIds = std::vector<std::vector<std::int32_t>>;

/// A folder that is written anew for each case.
class TokenizerFolder {
 public:
  TokenizerFolder()
      : path_(fs::path(testing::TempDir()) / text("tokenizer-folders-", ::getpid())) {}
  ~TokenizerFolder() { fs::remove_all(path_); }

  std::string write(const std::map<std::string, ordered_json>& files) const {
    fs::remove_all(path_);
    fs::create_directories(path_);
    for (const auto& [name, content] : files) {
      std::ofstream out(path_ / name, std::ios::binary);
      if (content.is_string()) {
        out << content.get<std::string>();
      } else if (content.contains("base64")) {
        const nlohmann::json none;
        out << tokenizer::bytes_of_base64(content["base64"].get<std::string>(), {none, name});
      } else {
        out << content.dump();
      }
    }
    return path_.string();
  }

 private:
  fs::path path_;
};

/// Applies what a case changes; `path` has keys and places in lists.
void change(std::map<std::string, ordered_json>& files, const ordered_json& c) {
  if (!c.contains("file")) return;
  const auto file = c["file"].get<std::string>();
  if (!c.contains("path")) {
    files.erase(file);
    return;
  }
  ordered_json* at = &files[file];
  const ordered_json& path = c["path"];
  const auto step = [](ordered_json& of, const ordered_json& key) -> ordered_json& {
    return key.is_string() ? of[key.get<std::string>()] : of[key.get<std::size_t>()];
  };
  for (std::size_t i = 0; i + 1 < path.size(); ++i) at = &step(*at, path[i]);
  if (c.contains("value")) {
    step(*at, path.back()) = c["value"];
  } else if (path.back().is_string()) {
    at->erase(path.back().get<std::string>());
  } else {
    at->erase(path.back().get<std::size_t>());
  }
}

/// Of each text without special tokens, with them, and of two texts.
ordered_json ids_of_texts(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  FolderIds bare, framed;
  for (const std::string& each : texts) {
    bare.push_back(tokenizer.encode(each, {.add_special_tokens = false}));
    framed.push_back(tokenizer.encode(each));
  }
  return {bare, framed, tokenizer.encode_pair(texts[0], texts[3]).ids};
}

TEST(TokenizerFolders, GiveTheIdsOfTransformersOrAreRefused) {
  const auto golden =
      ordered_json::parse(read_file(repo_file("tests/golden/tokenizer_folders.json")));
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  const TokenizerFolder folder;
  int equal = 0, refused = 0, no_reference = 0;
  for (const ordered_json& c : golden["cases"]) {
    ordered_json shown = c;
    shown.erase("ids");
    SCOPED_TRACE(shown.dump());
    std::map<std::string, ordered_json> files;
    for (const auto& [name, number] : golden["folders"][c["folder"].get<std::string>()].items())
      files[name] = golden["contents"][number.get<std::size_t>()];
    change(files, c);
    try {
      const Tokenizer tokenizer = Tokenizer::load(folder.write(files));
      const ordered_json ids = ids_of_texts(tokenizer, texts);
      if (c["ids"].is_null()) {
        ++no_reference;
        continue;
      }
      ++equal;
      EXPECT_EQ(ids.dump(), golden["results"][c["ids"].get<std::size_t>()].dump());
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.fault(), Fault::Data) << error.what();
      EXPECT_TRUE(c.contains("file") || c["ids"].is_null()) << error.what();
      // Of a refusal of what transformers reads: the changed key is named.
      if (!c["ids"].is_null() && c.contains("path") && c["path"].back().is_string()) {
        EXPECT_NE(std::string(error.what()).find(c["path"].back().get<std::string>()),
                  std::string::npos)
            << error.what();
      }
    }
  }
  RecordProperty("equal", equal);
  RecordProperty("refused", refused);
  std::cout << equal << " folders read, " << refused << " refused, " << no_reference
            << " read that transformers does not read\n";
}

}  // namespace
}  // namespace tessera
