/// CSV, TSV and JSON lines: what is read of them, and what is refused with its place.

#include "tessera/files/table_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/json_lines.h"

namespace tessera {
namespace {

/// "a|b;c|d (1,3)": the fields of each row, and the lines in which rows begin.
std::string shown_table(const Table& table) {
  std::string out;
  for (std::size_t row = 0; row < table.lines.size(); ++row) {
    if (row > 0) out += ';';
    for (std::size_t column = 0; column < table.columns.size(); ++column)
      out += text(column > 0 ? "|" : "", table.columns[column][row]);
  }
  return text(out, " (", join(table.lines, ","), ")");
}

std::string read_as(const std::string& path, const std::string& bytes,
                    const std::vector<std::string>& wanted, const TableOptions& options = {}) {
  return shown_table(parse_table(bytes, path, wanted, options));
}

TEST(TableFile, ReadsColumnsByName) {
  const struct {
    const char *what, *path, *bytes;
    std::vector<std::string> wanted;
    const char* shown;
  } cases[] = {
      {"csv", "a.csv", "id,text\n1,one\n2,two\n", {"text"}, "one;two (2,3)"},
      {"in the order of the wish", "a.csv", "id,text\n1,one\n", {"text", "id"}, "one|1 (2)"},
      {"a mark and carriage returns",
       "a.CSV",
       "\xEF\xBB\xBFtext,id\r\none,1\r\ntwo,2\r\n",
       {"text", "id"},
       "one|1;two|2 (2,3)"},
      {"no end of the last line", "a.csv", "text\none\ntwo", {"text"}, "one;two (2,3)"},
      {"a carriage return at the end", "a.csv", "text\none\ntwo\r", {"text"}, "one;two (2,3)"},
      {"quotes",
       "a.csv",
       "text,n\n\"a, b\",1\n\"say \"\"hi\"\"\",2\n\"\",3\n",
       {"text"},
       "a, b;say \"hi\"; (2,3,4)"},
      {"new lines in quotes",
       "a.csv",
       "text,n\n\"a\nb\r\nc\",1\nd,2\n",
       {"text", "n"},
       "a\nb\r\nc|1;d|2 (2,5)"},
      {"quotes around a name", "a.csv", "\"the text\",n\na,1\n", {"the text"}, "a (2)"},
      {"empty fields", "a.csv", "a,b,c\n,,\n1,,3\n", {"a", "b", "c"}, "||;1||3 (2,3)"},
      {"an empty field at the end of the file", "a.csv", "a,b\n1,", {"a", "b"}, "1| (2)"},
      {"empty lines", "a.csv", "\n\na,b\n\n1,2\n\r\n3,4\n\n", {"b"}, "2;4 (5,7)"},
      {"a carriage return within a line", "a.csv", "a,b\n1\r2,3\n", {"a"}, "1\r2 (2)"},
      {"tsv", "a.tsv", "a\tb\n1\t2\n", {"b"}, "2 (2)"},
      {"quotes of tsv are text",
       "a.tsv",
       "a\tb\n\"x\ty\"z\n\"\t\"\n",
       {"a", "b"},
       "\"x|y\"z;\"|\" (2,3)"},
      {"commas of tsv are text", "a.tsv", "a\tb\n1,2\t3\r\n", {"a", "b"}, "1,2|3 (2)"},
      {"json lines",
       "a.jsonl",
       "{\"text\": \"one\"}\n\n{\"id\": 2, \"text\": \"tw\\no\"}\n",
       {"text"},
       "one;tw\no (1,3)"},
      {"numbers and switches",
       "a.json",
       "{\"a\": 1, \"b\": -2, \"c\": 1.50, \"d\": true, \"e\": false}\r\n",
       {"a", "b", "c", "d", "e"},
       "1|-2|1.50|true|false (1)"},
      {"nested keys",
       "a.jsonl",
       "{\"id\": 7, \"translation\": {\"en\": \"a\", \"fr\": \"b\"}, \"en\": \"not\"}",
       {"translation.fr", "translation.en"},
       "b|a (1)"},
      {"other keys may hold anything",
       "a.jsonl",
       "{\"x\": [{\"text\": [null]}, [1]], \"y\": {\"text\": null}, \"z\": null, \"text\": \"a\"}",
       {"text"},
       "a (1)"},
      {"a key that is there twice", "a.jsonl", "{\"a\": \"1\", \"a\": \"2\"}", {"a"}, "2 (1)"},
      {"a mark before json", "a.jsonl", "\xEF\xBB\xBF{\"a\": \"1\"}", {"a"}, "1 (1)"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_EQ(read_as(c.path, c.bytes, c.wanted), c.shown);
  }
}

TEST(TableFile, FormatsAndNamesCanBeTold) {
  EXPECT_EQ(read_as("a.txt", "x\ty\n", {"b", "a"}, {TableFormat::Tsv, {"a", "b"}}), "y|x (1)");
  EXPECT_EQ(read_as("a.tsv", "p\tq\nx\ty\n", {"b"}, {.names = {"a", "b"}, .replace_header = true}),
            "y (2)");
  EXPECT_EQ(read_as("a.txt", "{\"a\": 1}", {"a"}, {TableFormat::JsonLines}), "1 (1)");
  EXPECT_EQ(read_as("a.tsv", "a,b\n\"x\",y\n", {"a"}, {TableFormat::Csv}), "x (2)");
}

/// Every message names the file, and where something stands in it: the line and the column.
TEST(TableFile, RefusesDamage) {
  const struct {
    const char *what, *path, *bytes, *message;
  } cases[] = {
      {"nothing", "a.csv", "", "'a.csv' is empty; give a file with rows"},
      {"a mark alone", "a.csv", "\xEF\xBB\xBF", "'a.csv' is empty"},
      {"empty lines alone", "a.csv", "\n\r\n", "'a.csv' has no row"},
      {"names alone", "a.csv", "text\n", "'a.csv' has no row after its header"},
      {"no row", "a.jsonl", " \n", "'a.jsonl' has no row; give a file with rows"},
      {"no such column", "a.csv", "id,the text\n1,a\n",
       "'a.csv' has no column 'text'; its columns are 'id', 'the text'"},
      {"a wrong format", "a.csv", "id;text\n1;a\n", "its columns are 'id;text'"},
      {"two of one name", "a.csv", "text,text\n1,a\n", "'a.csv' has two columns 'text'"},
      {"too few fields", "a.csv", "id,text,n\n1,a,2\n\n1,b\n",
       "'a.csv' line 4 has 2 fields but there are 3 columns, 'id', 'text', 'n'; give every row a "
       "field for each"},
      {"too many", "a.tsv", "text\na\tb\n", "'a.tsv' line 2 has 2 fields but there are 1 column"},
      {"an open quote", "a.csv", "id,text\n1,\"a\"\n2,\"b\n3,c\n",
       "'a.csv' line 3, column 2 'text': the quote that begins the field is not closed"},
      {"a quote within", "a.csv", "id,text\n1,5\" pipe\n",
       "'a.csv' line 2, column 2 'text': a quote inside an unquoted field"},
      {"text behind a quote", "a.csv", "id,text\n1,\"a\" b\n",
       "'a.csv' line 2, column 2 'text': text after the quote that closes the field"},
      {"no utf-8", "a.csv", "id,text\n\"1\n2\",\"a\nb\xFF\"\n",
       "'a.csv' line 4, column 2 'text': a byte is not UTF-8"},
      {"no utf-8 in a name", "a.csv", "id,te\xC3\n1,a\n",
       "'a.csv' line 1, column 2: a byte is not UTF-8"},
      {"no utf-8 in another column", "a.tsv", "id\ttext\n\x80\ta\n",
       "'a.tsv' line 2, column 1 'id': a byte is not UTF-8"},
      {"no json", "a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b}\n",
       "'a.jsonl' line 2, column 13: this is not JSON"},
      {"no utf-8 in json", "a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"\xFF\"}\n",
       "'a.jsonl' line 2, column 11: the byte there is not UTF-8"},
      {"no object", "a.jsonl", "[{\"text\": \"a\"}]",
       "'a.jsonl' line 1 is JSON, but not an object"},
      {"a word", "a.jsonl", "\"text\"", "'a.jsonl' line 1 is JSON, but not an object"},
      {"null", "a.jsonl", "null", "'a.jsonl' line 1 is JSON, but not an object"},
      {"two in a line", "a.jsonl", "{\"text\": \"a\"} {}", "this is not JSON"},
      {"no such key", "a.jsonl", "{\"text\": \"a\"}\n{\"x\": {\"text\": \"b\"}}",
       "'a.jsonl' line 2 has no key 'text'; its keys are 'x', 'x.text'"},
      {"no key", "a.jsonl", "{}", "'a.jsonl' line 1 has no key 'text'; the object is empty"},
      {"no text", "a.jsonl", "{\"text\": null}",
       "'a.jsonl' line 1: key 'text' is null where a text, a number, true or false is expected"},
      {"a list", "a.jsonl", "{\"text\": [\"a\"]}", "key 'text' is a list where a text"},
      {"an object", "a.jsonl", "{\"text\": {\"a\": 1}}", "key 'text' is an object where a text"},
      {"no format", "a.txt", "text\na\n",
       "the name of 'a.txt' does not show its format; give data-"},
  };
  const std::vector<std::string> wanted = {"text"};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const std::string message = message_of([&] { parse_table(c.bytes, c.path, wanted, {}); });
    EXPECT_NE(message.find(c.message), std::string::npos) << message;
  }
  EXPECT_NE(message_of([&] {
              parse_table("{\"text\": 1}", "a.jsonl", wanted, {.names = {"text"}});
            }).find("whose objects name their columns"),
            std::string::npos);
  EXPECT_NE(message_of([&] { read_table("none.csv", wanted); }).find("none.csv"),
            std::string::npos);
}

/// Parsed, a row takes some times its bytes: what is no row, for want of new lines or of a quote,
/// is told before it takes all memory.
TEST(TableFile, RowsHaveALimit) {
  const std::string too_long(static_cast<std::size_t>(kMostLineBytes) + 1, 'x');
  const std::string says = "of more than 64.0 MiB begins here";
  const struct {
    const char *path, *begin, *end, *where;
  } cases[] = {
      {"a.csv", "a,b\n1,", "\n", "'a.csv' line 2: a row"},
      {"a.csv", "a,b\n\n1,\"\n", "\"\n", "'a.csv' line 3: a row"},
      {"a.tsv", "a\tb\n1\t2\n3\t", "", "'a.tsv' line 3: a row"},
      {"a.jsonl", "{\"a\": 1}\n{\"a\": \"", "\"}\n", "'a.jsonl' line 2: a line"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.where);
    const std::string message =
        message_of([&] { read_as(c.path, c.begin + too_long + c.end, {"a"}); });
    EXPECT_NE(message.find(text(c.where, " ", says)), std::string::npos) << message.substr(0, 300);
  }
  const std::string fields =
      message_of([&] { read_as("a.csv", "a\n" + std::string(kMostFields + 1, ','), {"a"}); });
  EXPECT_NE(fields.find("a row has at most 100000 fields"), std::string::npos) << fields;
}

/// The Microsoft Research Paraphrase Corpus, as it was published and as GLUE has it: tabs, no
/// quotes around fields, a byte order mark. A reader that takes quotes for marks loses 114 of the
/// 4,076 rows.
TEST(TableFile, ReadsTheRowsOfMrpc) {
  const std::string folder = test_data("mrpc");
  if (folder.empty()) GTEST_SKIP() << no_test_data("mrpc");
  const TableOptions named = {TableFormat::Tsv,
                              {"label", "id1", "id2", "sentence1", "sentence2"},
                              /*replace_header=*/true};
  const struct {
    const char* file;
    std::int64_t rows, positive;
  } cases[] = {
      {"msr_paraphrase_train.txt", 4076, 2753},
      {"msr_paraphrase_test.txt", 1725, 1147},
      {"train.tsv", 3668, 2474},
      {"dev.tsv", 408, 279},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.file);
    const std::string path = folder + "/" + c.file;
    const std::vector<std::string> wanted = {"sentence1", "sentence2", "label"};
    const Table table = read_table(path, wanted, named);
    EXPECT_EQ(table.rows(), c.rows);
    std::map<std::string, std::int64_t> labels;
    for (const std::string& label : table.columns[2]) ++labels[label];
    EXPECT_EQ(labels["1"], c.positive);
    EXPECT_EQ(labels["0"], c.rows - c.positive);
    const std::vector<std::string> by_header = {"#1 String", "#2 String", "Quality"};
    EXPECT_EQ(read_table(path, by_header, {TableFormat::Tsv}).columns, table.columns);
  }
  const std::string train = folder + "/msr_paraphrase_train.txt";
  const std::vector<std::string> wanted = {"#1 String"};
  EXPECT_EQ(read_table(train, wanted, {TableFormat::Tsv}).columns[0][1],
            "Yucaipa owned Dominick 's before selling the chain to Safeway in 1998 for $ 2.5 "
            "billion .");
}

}  // namespace
}  // namespace tessera
