/// JSON that is too deep to be copied, and what reads it.

#include "tessera/files/deep_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "files/test_data.h"
#include "tessera/base/error.h"
#include "tessera/files/other_columns.h"
#include "tessera/tokenizers/files.h"

namespace tessera {
namespace {

std::string lists(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(DeepJson, BracketsOfTextsDoNotCount) {
  EXPECT_FALSE(is_deep_json(lists(kMostJsonDepth)));
  EXPECT_TRUE(is_deep_json(lists(kMostJsonDepth + 1)));
  EXPECT_FALSE(is_deep_json("\"\\\"" + lists(kMostJsonDepth + 1) + "\""));
  EXPECT_TRUE(parse_shallow<nlohmann::json>(lists(300'000)).is_discarded());
}

TEST(DeepJson, OfATokenizerIsRefused) {
  const std::string message = message_of(
      [] { tokenizer::parse_json_file("{\"a\":" + lists(300'000) + "}", "vocab.json"); });
  EXPECT_NE(message.find("'vocab.json' has lists or objects nested deeper than 100"),
            std::string::npos)
      << message;
}

TEST(OtherColumnsOfTables, RefuseDeepValuesAndManyKeys) {
  const TestFolder folder;
  const std::string path = folder / "a.jsonl", texts[] = {"text"};
  const auto refusal = [&](const std::string& second) {
    std::ofstream(path) << "{\"text\": \"a\"}\n" << second << "\n";
    return message_of([&] { read_other_columns(path, texts, {}); });
  };
  EXPECT_NE(refusal("{\"text\": \"a\", \"x\": " + lists(200'000) + "}").find("line 2 has lists"),
            std::string::npos);
  nlohmann::json many = {{"text", "a"}};
  for (int i = 0; i < 1000; ++i) many["k" + std::to_string(i)] = i;
  EXPECT_EQ(refusal(many.dump()), "");
  many["more"] = 0;
  EXPECT_NE(refusal(many.dump()).find("more than 1000 keys up to line 2"), std::string::npos);
}

TEST(OtherColumnsOfTables, LackTextsThatAreKeysWithinKeys) {
  const TestFolder folder;
  const std::string path = folder / "a.jsonl", texts[] = {"a.b.c", "d"};
  std::ofstream(path) << R"({"a": {"b": {"c": "long"}, "id": 1}, "d": "long", "e": {"c": 2}})"
                      << "\n"
                      << R"({"a": {"b": {"c": "long"}}, "d": "long", "e": {}})"
                      << "\n"
                      << R"({"a.b.c": "long", "d": "long", "e": "x"})"
                      << "\n";
  const OtherColumns columns = read_other_columns(path, texts, {});
  EXPECT_EQ(columns.names, (std::vector<std::string>{"a", "e"}));
  EXPECT_EQ(columns.rows, (std::vector<std::vector<std::string>>{
                              {R"({"id":1})", R"({"c":2})"}, {"", "{}"}, {"", "x"}}));
}

TEST(OtherColumnsOfTables, MayHaveOneName) {
  const TestFolder folder;
  const std::string path = folder / "a.csv", texts[] = {"text"};
  std::ofstream(path) << "text,label,,\nhello,yes,1,2\n";
  const OtherColumns columns = read_other_columns(path, texts, {});
  EXPECT_EQ(columns.names, (std::vector<std::string>{"label", "", ""}));
  EXPECT_EQ(columns.rows, (std::vector<std::vector<std::string>>{{"yes", "1", "2"}}));
}

}  // namespace
}  // namespace tessera
