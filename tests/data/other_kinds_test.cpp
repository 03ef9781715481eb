/// Files that are no text are told by their first bytes; JSON with half of a character says so.

#include "tessera/files/other_kinds.h"

#include <gtest/gtest.h>

#include <fstream>

#include "files/test_data.h"
#include "tessera/data/questions.h"
#include "tessera/data/tagged_words.h"
#include "tessera/files/json_fault.h"
#include "tessera/files/json_lines.h"
#include "tessera/files/table_file.h"
#include "tessera/files/text.h"

namespace tessera {
namespace {

TEST(OtherKinds, AreRefusedAsTextsAndTables) {
  const TestFolder folder;
  const struct {
    const char* name;
    std::string bytes;
    const char* what;
  } cases[] = {{"a.parquet", std::string("PAR1\0\0", 6), "is a Parquet file; write it as JSON"},
               {"a.csv", "PK\x03\x04zip", "is a ZIP archive"},
               {"a.jsonl", std::string(257, 'x') + "ustar", "is an archive of tar; unpack it"},
               {"a.txt", "%PDF-1.7\n", "is a PDF file"},
               {"a.tsv", "BZh91AY", "is packed by bzip2; unpack it"}};
  const std::vector<std::string> wanted = {"text"};
  for (const auto& [name, bytes, what] : cases) {
    SCOPED_TRACE(name);
    const std::string path = folder / name;
    std::ofstream(path) << bytes;
    EXPECT_NE(message_of([&] { load_text({path}); }).find(what), std::string::npos);
    EXPECT_NE(message_of([&] { read_table(path, wanted, {TableFormat::Csv}); }).find(what),
              std::string::npos);
    EXPECT_NE(message_of([&] { read_tagged_words(path); }).find(what), std::string::npos);
    EXPECT_NE(message_of([&] { read_questions(path); }).find(what), std::string::npos);
    EXPECT_EQ(load_text({path}, {InvalidUtf8::Keep}).bytes, bytes) << "bytes are bytes";
    EXPECT_NE(other_kind_at(path), "");
  }
  for (const auto& [begin, how] :
       {std::pair("PAR1", "pandas.read_parquet(FILE).to_json("),
        {"ARROW1", "pandas.read_feather(FILE).to_json("},
        {"\xFF\xFF\xFF\xFF", "datasets.Dataset.from_file(FILE).to_json(\"data.jsonl\")"}})
    EXPECT_NE(other_kind(begin).find(how), std::string::npos) << other_kind(begin);
  EXPECT_EQ(other_kind("PARIS is a town"), "");
  EXPECT_EQ(other_kind(""), "");
}

TEST(OtherKinds, PartsOfTokenFilesHaveTheOtherBesideThem) {
  const TestFolder folder;
  std::ofstream(folder / "a.bin") << "0123";
  EXPECT_EQ(other_kind_at(folder / "a.bin"), "") << "any file may end so";
  std::ofstream(folder / "a.idx") << "MMIDIDX";
  EXPECT_EQ(other_kind_at(folder / "a.bin"),
            "a part of token files; give their prefix, --data " + (folder / "a"));
  EXPECT_EQ(other_kind_at(folder / "none.bin"), "");
}

TEST(JsonFault, HalfOfACharacterIsNamed) {
  const auto names = [](const char* json, const char* escape) {
    return json_fault(json, "x").find(std::string("the escape ") + escape) == 0;
  };
  EXPECT_TRUE(names(R"({"a": "b\ud83d"})", R"(\ud83d at byte 9)"));
  EXPECT_TRUE(names(R"({"a": "\ud83d\ude00\uDE00"})", R"(\uDE00 at byte 20)"));
  EXPECT_TRUE(names(R"({"a": "\ud83d\ud83d\ude00"})", R"(\ud83d at byte 8)"));
  EXPECT_EQ(json_fault(R"({"a": "\\ud83d" "b")", "x"), "this is not JSON; give x") << "no escape";
  EXPECT_EQ(json_fault(R"({"\ud83d\ude00": )", "x"), "this is not JSON; give x") << "a whole one";
  EXPECT_EQ(json_fault("\\u12", "x"), "this is not JSON; give x");

  const std::string path = "a.jsonl", line = R"({"text": "\ud83d", "tokens": ["\ud83d"]})";
  const std::vector<std::string> wanted = {"text"};
  for (const std::string& message :
       {message_of([&] { parse_table(line, path, wanted, {}); }), message_of([&] {
          texts_in_line(line, wanted, {&path, 1});
        }),
        message_of([&] { parse_tagged_words(line, path); }),
        message_of([&] { parse_questions(line, path); })})
    EXPECT_NE(message.find("is half of a character (a lone surrogate)"), std::string::npos)
        << message;
}

}  // namespace
}  // namespace tessera
