/// Files beside a vocabulary that are not what they are to be: each is named, and none counts as
/// if it were not there.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "files/test_data.h"
#include "tessera/base/error.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera {
namespace {

using Contents = std::map<std::string, std::string>;

/// "": it is read.
std::string fault_of(const Contents& files) {
  const TestFolder folder;
  for (const auto& [name, bytes] : files) std::ofstream(folder / name) << bytes;
  try {
    Tokenizer::load(folder.path());
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Data) << error.what();
    return error.what();
  }
  return "";
}

TEST(TokenizerCompanions, AFileThatIsNoObjectIsNamed) {
  const Contents bert = {{"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"}},
                 gpt2 = {{"vocab.json", R"({"a": 0, "<|endoftext|>": 1})"},
                         {"merges.txt", "#version: 0.2\n"}};
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  for (const auto& [model_type, vocabulary] :
       std::map<std::string, Contents>{{"bert", bert}, {"gpt2", gpt2}, {"", bert}}) {
    Contents sound = vocabulary;
    for (const char* name :
         {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
      sound[name] = "{}";
    if (!model_type.empty()) sound["config.json"] = R"({"model_type": ")" + model_type + "\"}";
    ASSERT_EQ(fault_of(sound), "") << model_type;
    for (const auto& [name, content] : sound) {
      if (!name.ends_with(".json")) continue;
      for (const std::string& bytes : {std::string(), std::string("[]"), std::string("{\"a\": "),
                                       std::string("3"), "{\"a\": " + deep + "}"}) {
        SCOPED_TRACE(model_type + ": " + name + " = " + bytes.substr(0, 20));
        Contents damaged = sound;
        damaged[name] = bytes;
        EXPECT_NE(fault_of(damaged).find("/" + name + "'"), std::string::npos) << fault_of(damaged);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
