#include "tessera/pretrained/exported_tokenizer.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

struct ExportedCase {
  const char* what;
  TokenizerFiles files;
  const char* config;  // tokenizer_config.json; empty: there is none
};

const ExportedCase kExportedCases[] = {
    {"small letters",
     {{"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"}},
     "{\n  \"tokenizer_class\": \"BertTokenizer\",\n  \"do_lower_case\": true\n}\n"},
    {"what is there stays",
     {{"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nA\n"},
      {"tokenizer_config.json", R"({"do_lower_case": false, "mine": 1})"}},
     "{\n  \"do_lower_case\": false,\n  \"mine\": 1,\n  \"tokenizer_class\": "
     "\"BertTokenizer\"\n}\n"},
    {"merges",
     {{"vocab.json", R"({"a": 0, "b": 1, "ab": 2})"}, {"merges.txt", "#version: 0.2\na b\n"}},
     "{\n  \"tokenizer_class\": \"GPT2Tokenizer\"\n}\n"},
};

TEST(ExportedTokenizer, TellsTransformersItsClass) {
  for (const ExportedCase& c : kExportedCases) {
    SCOPED_TRACE(c.what);
    const TokenizerFiles files = exported_files(Tokenizer::of(c.files, "here"));
    EXPECT_EQ(files.at("tokenizer_config.json"), c.config);
    EXPECT_EQ(Tokenizer::of(files, "here").encode("ab"),
              Tokenizer::of(c.files, "here").encode("ab"));
  }
}

}  // namespace
}  // namespace tessera
