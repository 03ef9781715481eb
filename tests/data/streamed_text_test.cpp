/// Texts that are read while a run trains: which tokens a sample has, and that a run goes on with
/// the same ones without what lies before.

#include "tessera/data/streamed_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "files/packed.h"
#include "files/test_data.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/streaming/pieces.h"
#include "tessera/files/file.h"
#include "tessera/token_files/blend.h"

namespace tessera {
namespace {

using Row = std::vector<std::int32_t>;
constexpr std::int64_t kContext = 16;

/// Ids of a sample and its last label.
Row row_of(const StreamedText& texts, std::int64_t number, std::int64_t context = kContext) {
  Row ids(static_cast<std::size_t>(context)), labels = ids;
  texts.sample(number, context, ids.data(), labels.data());
  EXPECT_TRUE(std::equal(ids.begin() + 1, ids.end(), labels.begin())) << "sample " << number;
  ids.push_back(labels.back());
  return ids;
}
std::vector<Row> rows_of(const StreamedText& texts, std::int64_t first, std::int64_t end) {
  std::vector<Row> out;
  for (std::int64_t i = first; i < end; ++i) out.push_back(row_of(texts, i));
  return out;
}

/// `count` documents that are told apart by `name`.
std::string json_lines(char name, int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += text("{\"id\": ", i, ", \"text\": \"", name, i, std::string(i * 37 % 90, name), "\"}\n");
  return out;
}
std::string all_texts(char name, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text(name, i, std::string(i * 37 % 90, name), "\n");
  return out;
}

class Streams : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& bytes) {
    write_atomically(folder_ / name, bytes);
    return folder_ / name;
  }
  static StreamedText open(const StreamChoice& choice) {
    return StreamedText(choice, Vocabulary::bytes());
  }
  TestFolder folder_;
};

TEST_F(Streams, SamplesAreTheDocumentsOneBehindAnotherAgainAndAgain) {
  const std::string texts = all_texts('a', 300);
  const struct {
    const char* what;
    std::string path, column;
  } cases[] = {{"JSON lines", file("a.jsonl", json_lines('a', 300)), "text"},
               {"packed", file("a.jsonl.gz", packed_by_gzip(json_lines('a', 300))), "text"},
               {"a text", file("a.txt", texts.substr(0, texts.size() - 1)), ""}};
  for (const auto& [what, path, column] : cases) {
    const StreamedText stream =
        open({.sources = {{path}}, .column = column, .buffer = 1, .workers = 2});
    const std::string twice = texts + texts;
    for (std::int64_t i = 0; (i + 1) * kContext < std::ssize(twice); ++i) {
      const std::string_view wanted =
          std::string_view(twice).substr(static_cast<std::size_t>(i * kContext), kContext + 1);
      ASSERT_EQ(row_of(stream, i), Row(wanted.begin(), wanted.end())) << what << ", sample " << i;
    }
    const StreamTally once = stream.read_once();
    EXPECT_EQ(once.tokens, std::ssize(texts)) << what;
    EXPECT_EQ(once.file_bytes, InputFile(path).size()) << what;
  }
}

TEST_F(Streams, EachBlockIsShuffledAlone) {
  const std::string path = file("a.jsonl", json_lines('a', 300));
  StreamChoice choice{.sources = {{path}}, .column = "text", .seed = 5, .buffer = 1};
  const StreamedText plain = open(choice);
  choice.buffer = 20;
  const StreamedText shuffled = open(choice);
  choice.seed = 6;
  const StreamedText other = open(choice);
  int same = 0;
  for (std::int64_t block = 0; block < 30; ++block) {
    std::vector<Row> a = rows_of(plain, block * 20, block * 20 + 20),
                     b = rows_of(shuffled, block * 20, block * 20 + 20);
    same += a == b;
    EXPECT_NE(b, rows_of(other, block * 20, block * 20 + 20));
    std::ranges::sort(a);
    std::ranges::sort(b);
    ASSERT_EQ(a, b) << "block " << block;
  }
  EXPECT_EQ(same, 0);
}

TEST_F(Streams, EachFileIsReadOnceInAPassInAnotherOrder) {
  StreamChoice choice{.sources = {{}}, .column = "text", .buffer = 1};
  std::string texts;
  for (const char name : std::string("abcdefgh")) {
    choice.sources[0].push_back(file(text(name, ".jsonl"), json_lines(name, 4)));
    texts += all_texts(name, 4);
  }
  const StreamedText stream = open(choice);
  const std::int64_t passes = 3, size = std::ssize(texts);
  std::string read;
  for (std::int64_t i = 0; std::ssize(read) < passes * size; ++i) {
    const Row row = row_of(stream, i);
    read.append(row.begin(), row.end() - 1);
  }
  std::vector<std::string> seen;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    std::string of_pass = read.substr(static_cast<std::size_t>(pass * size), texts.size());
    seen.push_back(of_pass);
    std::ranges::sort(of_pass);
    std::string sorted = texts;
    std::ranges::sort(sorted);
    EXPECT_EQ(of_pass, sorted) << "pass " << pass;
  }
  EXPECT_NE(seen[0], seen[1]);
}

TEST_F(Streams, MixturesTakeSamplesByWeight) {
  StreamChoice choice{.sources = {{file("a.jsonl", json_lines('a', 300))},
                                  {file("b.jsonl", json_lines('b', 50))},
                                  {file("c.jsonl", json_lines('c', 10))}},
                      .weights = {5, 3, 2},
                      .column = "text",
                      .buffer = 4};
  const StreamedText stream = open(choice);
  const std::vector<double> weights = normalised(choice.weights);
  const BlendIndices reference = blend_by_weight(weights, 500);
  std::vector<StreamChoice> alone(3, choice);
  for (std::size_t i = 0; i < 3; ++i)
    alone[i].sources = {choice.sources[i]}, alone[i].weights.clear();
  for (std::int64_t i = 0; i < 500; ++i) {
    const Row row = row_of(stream, i);
    const char name = static_cast<char>('a' + reference.datasets.at(i));
    EXPECT_TRUE(std::ranges::find(row, name) != row.end() ||
                std::ranges::all_of(row, [](std::int32_t c) { return c < 'a'; }))
        << "sample " << i;
  }
  EXPECT_EQ(row_of(stream, 7), row_of(open(choice), 7)) << "back at an earlier sample";
}

TEST_F(Streams, ARunGoesOnWhereItStopped) {
  const std::string a = json_lines('a', 400);
  const std::vector<std::string> many = {file("b.jsonl", json_lines('b', 90)),
                                         file("c.jsonl.zst", packed_by_zstd(json_lines('c', 70)))};
  const struct {
    const char* what;
    StreamChoice choice;
  } cases[] = {{"one file", {.sources = {{file("a.jsonl", a)}}, .column = "text", .buffer = 8}},
               {"from a byte",
                {.sources = {{file("a.jsonl", a)}}, .column = "text", .buffer = 8, .offset = 9000}},
               {"a text", {.sources = {{file("a.txt", all_texts('t', 3000))}}, .buffer = 8}},
               {"several files", {.sources = {many}, .column = "text", .buffer = 8}},
               {"a mixture",
                {.sources = {{file("a.jsonl", a)}, many},
                 .weights = {1, 2},
                 .column = "text",
                 .buffer = 8}}};
  for (const auto& [what, choice] : cases) {
    const StreamedText whole = open(choice);
    std::vector<std::string> places;
    std::vector<Row> rows;
    constexpr std::int64_t kSamples = 700;  // more than a pass over the small files
    for (std::int64_t i = 0; i < kSamples; ++i) {
      places.push_back(whole.place(i, kContext));
      rows.push_back(row_of(whole, i));
    }
    for (const std::int64_t at : {0, 1, 7, 8, 9, 16, 100, 333, 690}) {
      StreamChoice other = choice;
      other.workers = 3;
      const StreamedText rest = open(other);
      const std::string notice = rest.go_on(places[static_cast<std::size_t>(at)], "here");
      EXPECT_EQ(rest.place(at, kContext), places[static_cast<std::size_t>(at)]) << "unread";
      for (std::int64_t i = at; i < std::min(at + 40, kSamples); ++i)
        ASSERT_EQ(row_of(rest, i), rows[static_cast<std::size_t>(i)])
            << what << " from " << at << ", sample " << i;
      EXPECT_EQ(rest.place(at + 9, kContext), places[static_cast<std::size_t>(at + 9)]);
    }
    // Another length of samples has other blocks, which are found from the beginning.
    const StreamedText longer = open(choice), longer_from = open(choice);
    longer_from.go_on(places[100], "here");
    EXPECT_EQ(row_of(longer_from, 30, 2 * kContext), row_of(longer, 30, 2 * kContext)) << what;
  }
}

TEST_F(Streams, WhatLiesBeforeIsNotReadAgain) {
  std::string lines = json_lines('a', 4000);
  const std::string path = file("a.jsonl", lines);
  const StreamChoice choice{.sources = {{path}}, .column = "text", .buffer = 8};
  const StreamedText whole = open(choice);
  const Row wanted = row_of(whole, 9000);
  const std::string place = whole.place(9000, kContext);
  const std::size_t second = lines.find('\n') + 1;
  lines[second] = 'x';
  file("a.jsonl", lines);
  const StreamedText rest = open(choice);
  EXPECT_EQ(rest.go_on(place, "here"), "");
  EXPECT_EQ(row_of(rest, 9000), wanted);
  const std::string said = message_of([&] { row_of(open(choice), 0); });
  EXPECT_NE(said.find("a.jsonl' line 2"), std::string::npos) << said;

  const std::string packed = file("a.jsonl.gz", packed_by_gzip(json_lines('a', 4000)));
  const StreamChoice of_packed{.sources = {{packed}}, .column = "text", .buffer = 8};
  const StreamedText first = open(of_packed), again = open(of_packed);
  EXPECT_EQ(row_of(first, 9000), wanted);
  EXPECT_NE(again.go_on(first.place(9000, kContext), "here").find("packed files are read again"),
            std::string::npos);
  EXPECT_EQ(row_of(again, 9000), wanted);
}

TEST_F(Streams, BeginAtTheFirstDocumentBehindAByte) {
  const std::string a = json_lines('a', 50), b = json_lines('b', 50);
  StreamChoice choice{
      .sources = {{file("a.jsonl", a), file("b.jsonl", b)}}, .column = "text", .buffer = 1};
  const StreamedText all = open(choice);
  const StreamFiles files{choice.sources[0], "text", false, random_key(0, "data.files.0")};
  const bool a_first = files.file(0, 0) == choice.sources[0][0];
  const std::string lines = a_first ? a + b : b + a;
  for (const std::int64_t offset : {std::int64_t{1}, std::int64_t{200}, std::ssize(a),
                                    std::ssize(a) + 1, std::ssize(lines) - 60}) {
    choice.offset = offset;
    const std::size_t line = lines.find('\n', static_cast<std::size_t>(offset - 1)) + 1;
    if (line == lines.size()) continue;
    const std::size_t begin = lines.find("\"text\": \"", line) + 9;
    const Row row = row_of(open(choice), 0);
    EXPECT_EQ(row[0], lines[begin]) << offset;
    EXPECT_EQ(row[1], lines[begin + 1]) << offset;
  }
  choice.offset = 1 << 20;
  EXPECT_NE(message_of([&] { open(choice); }).find(text("the data has ", lines.size(), " bytes")),
            std::string::npos);
}

TEST_F(Streams, WhatIsWrongIsNamed) {
  const std::string good = json_lines('a', 3000);
  const struct {
    const char* what;
    std::string bytes, said;
  } cases[] = {{"no object", good + "x\n" + good, "line 3001"},
               {"another key", good + "{\"a\": 1}\n", "line 3001"},
               {"no text", "{\"text\": \"\"}\n", "have no token"},
               {"nothing", "\n\n", "have no token"},
               {"an empty file", "", "has no text"}};
  for (const auto& [what, bytes, said] : cases) {
    const StreamChoice choice{.sources = {{file("a.jsonl", bytes)}}, .column = "text", .buffer = 4};
    const std::string message = message_of([&] {
      const StreamedText stream = open(choice);
      rows_of(stream, 0, 20000);
    });
    EXPECT_NE(message.find(said), std::string::npos) << what << ": " << message;
  }
  StreamChoice skips{.sources = {{file("a.jsonl", "x\n" + good)}}, .column = "text"};
  EXPECT_NE(message_of([&] { open(skips); }).find("line 1"), std::string::npos) << "told at once";
  skips.skip_bad_rows = true;
  EXPECT_EQ(message_of([&] { row_of(open(skips), 0); }), "");

  const StreamChoice choice{.sources = {{file("a.jsonl", good)}}, .column = "text", .buffer = 4};
  const std::string place = open(choice).place(0, kContext);
  for (const std::string& bad :
       {std::string("x"), std::string("{}"), std::string(R"({"samples":0,"context":1,"buffer":1})"),
        place.substr(0, place.find("\"sources\"")) + "\"sources\":[]}",
        place.substr(0, place.find("\"file\":0")) + "\"file\":-1" +
            place.substr(place.find("\"file\":0") + 8),
        place.substr(0, place.find("\"file\":0")) + "\"file\":7" +
            place.substr(place.find("\"file\":0") + 8)}) {
    const StreamedText stream = open(choice);
    EXPECT_NE(message_of([&] { stream.go_on(bad, "manifest"); }).find("manifest"),
              std::string::npos)
        << bad;
  }
}

}  // namespace
}  // namespace tessera
