#include "tessera/tokenizers/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/hash.h"
#include "tessera/base/philox.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/file.h"
#include "tessera/tokenizers/byte_tokens.h"
#include "tessera/tokenizers/text_pieces.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {
namespace {

using Tokens = std::vector<std::int32_t>;

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) out.emplace_back(take_piece(text));
  return out;
}

TEST(TextPieces, Rules) {
  struct Case {
    const char* in;
    std::vector<std::string> out;
  };
  const Case cases[] = {
      {"a bc", {"a", " bc"}},
      {"we'll, isn't", {"we", "'ll", ",", " isn", "'t"}},
      {"a12 3b", {"a", "12", " 3", "b"}},
      {"x  y   z ", {"x", " ", " y", "  ", " z", " "}},
      {" \t\n\n b\t", {" ", "\t", "\n", "\n", " b", "\t"}},
      {"a \nb", {"a", " ", "\n", "b"}},
      {"\u00a0\u00a0a", {"\u00a0", "\u00a0", "a"}},
      {" \u00a0 a", {" \u00a0", " a"}},
      {"\u00e9t\u00e9 !", {"\u00e9t\u00e9", " !"}},
      {"'s's\u2019s", {"'s", "'s", "\u2019", "s"}},
      {"\xff\xfe"
       "a",
       {"\xff\xfe", "a"}},
  };
  for (const Case& c : cases) EXPECT_EQ(pieces_of(c.in), c.out) << c.in;
}

/// Merges by the definition: all pairs are counted again after each.
std::string merges_by_definition(std::string_view text, std::size_t size) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& piece : pieces_of(text)) {
    auto& row = rows.emplace_back();
    for (const char c : piece) row.emplace_back(1, c);
  }
  std::map<std::string, std::size_t> id;
  for (int byte = 0; byte < 256; ++byte) {
    const auto b = static_cast<unsigned char>(byte);
    id[std::string(1, static_cast<char>(b))] = static_cast<std::size_t>(id_of_byte(b));
  }
  std::string out;
  while (id.size() < size) {
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> times;
    for (const auto& row : rows) {
      for (std::size_t i = 1; i < row.size(); ++i) ++times[{id[row[i - 1]], id[row[i]]}];
    }
    const auto best = std::ranges::max_element(
        times, [](const auto& a, const auto& b) { return a.second < b.second; });  // the first
    if (best == times.end() || best->second < 2) break;
    std::string left, right;
    for (const auto& [token, number] : id) {
      if (number == best->first.first) left = token;
      if (number == best->first.second) right = token;
    }
    id.emplace(left + right, id.size());
    for (auto& row : rows) {
      for (std::size_t i = 0; i + 1 < row.size(); ++i) {
        if (row[i] != left || row[i + 1] != right) continue;
        row[i] += right;
        row.erase(row.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    for (const std::string& token : {left, right}) {
      for (const char c : token) append_utf8(out, printed_byte(static_cast<unsigned char>(c)));
      out += ' ';
    }
    out.back() = '\n';
  }
  return out;
}

TEST(Bpe, LearnsWhatItsDefinitionSays) {
  const std::uint64_t key = random_key(7, "bpe.texts");
  for (std::uint64_t round = 0; round < 40; ++round) {
    std::string text;
    for (std::uint64_t i = 0; i < 60 + 20 * round; ++i) {
      text += "aaabbc d\n\t"[philox_bits(key, i, round) % (round % 2 == 0 ? 8 : 10)];
    }
    const Bpe learned = Bpe::learn(text, 300);
    EXPECT_EQ(learned.merges_text(), merges_by_definition(text, 300)) << text;
    EXPECT_EQ(Vocabulary::bpe(text, 300).decode(learned.encode(text)), text);
  }
}

/// tests/golden/README.md: what the `tokenizers` library learns and how it encodes.
TEST(Bpe, EqualsTokenizers) {
  const auto golden = nlohmann::json::parse(read_file(repo_file("tests/golden/bpe.json")));
  const std::string text = golden["text"];
  const auto lines = [](const nlohmann::json& list) {
    std::string out;
    for (const std::string line : list) out += line + "\n";
    return out;
  };
  const Bpe learned = Bpe::learn(text, golden["size"]);
  EXPECT_EQ(learned.size(), golden["size"]);
  EXPECT_EQ(learned.merges_text(), lines(golden["merges"]));
  const Bpe all = Bpe::learn(text, 100'000);
  EXPECT_EQ(all.size(), golden["most"]);
  EXPECT_EQ(all.merges_text(), lines(golden["all_merges"]));
  for (const auto& c : golden["cases"]) {
    const std::string in = c["text"];
    SCOPED_TRACE(in);
    EXPECT_EQ(learned.encode(in), c["ids"].get<Tokens>());
  }
}

/// The first 8,000 tokens of a real corpus; the digest is that of what `tokenizers` learned:
/// tools/golden/bpe.py CORPUS 8000.
TEST(Bpe, EqualsTokenizersOnShakespeare) {
  const std::string path = test_data("tinyshakespeare/input.txt");
  if (path.empty()) GTEST_SKIP() << no_test_data("tinyshakespeare/input.txt");
  const std::string text = read_file(path);
  const std::string merges = Bpe::learn(text, 8000).merges_text();
  EXPECT_EQ(std::count(merges.begin(), merges.end(), '\n'), 7744);
  EXPECT_EQ(hash128_text(std::as_bytes(std::span(merges))), "d42dbe7c7a8e71bc434628b4089c1dcf");
}

TEST(Bpe, AnyBytesComeBack) {
  const Bpe learned = Bpe::learn("the cat the hat \u00e9t\u00e9 \u00e9t\u00e9\n", 280);
  const Vocabulary vocabulary =
      Vocabulary::bpe("the cat the hat \u00e9t\u00e9 \u00e9t\u00e9\n", 280);
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::string texts[] = {
      "", all, all + all, "\xc3", "\u00e9t\xc3", std::string(3, '\0'), "the the\t the"};
  for (const std::string& text : texts) EXPECT_EQ(vocabulary.decode(learned.encode(text)), text);
  EXPECT_EQ(vocabulary.decode(Tokens{0, 5000, -1}), "!\uFFFD\uFFFD");
}

/// A piece may be as long as the text: time grows with it, not with its square.
TEST(Bpe, LongPieces) {
  const std::string one(2'000'000, '^');
  const Bpe learned = Bpe::learn(one, 8000);
  EXPECT_EQ(learned.encode(one).size(), 7u);  // as 2,000,000 has ones in binary digits
  EXPECT_EQ(learned.size(), 256 + 20);        // halves of halves, until no pair stands twice
}

TEST(Bpe, AMergeNeverCrossesTabsAndLines) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "a\tb\n\n";
  EXPECT_EQ(Bpe::learn(text, 300).size(), 256);
  const Vocabulary vocabulary = Vocabulary::bpe("ab ab \t ab\n", 300);
  EXPECT_EQ(vocabulary.encode("\t").size(), 1u);
  EXPECT_EQ(vocabulary.encode("\n\n").size(), 2u);
}

TEST(Bpe, ItsSize) {
  EXPECT_EQ(message_of([] { Bpe::learn("ab", 255); }),
            "a vocabulary of 255 tokens has no room for the 256 bytes; give at least 256");
  EXPECT_EQ(Bpe::learn("ab ab ab", 256), Bpe());
  EXPECT_EQ(Bpe::learn("ab ab ab", 257).size(), 257);
  EXPECT_EQ(Bpe::learn("", 300), Bpe());
}

TEST(Bpe, ReadsWhatItWrites) {
  const Vocabulary vocabulary =
      Vocabulary::bpe("the cat, the hat: \u00e9t\u00e9 \u00e9t\u00e9\n", 290);
  EXPECT_EQ(Vocabulary::from_json(vocabulary.to_json(), "v.json"), vocabulary);
  EXPECT_EQ(Vocabulary::bpe("ab ab", 257).to_json(),
            "{\"format\":\"tessera vocabulary\",\"version\":1,\"kind\":\"bpe\",\"size\":257,"
            "\"merges\":\"a b\\n\"}\n");
  const std::string head = R"({"format":"tessera vocabulary","version":1,"kind":"bpe")";
  struct Case {
    std::string json, part;
  };
  const Case cases[] = {
      {head + "}", "it has no \"merges\""},
      {head + R"(,"size":258,"merges":"a b\n"})", "it says size 258 but has merges for 257 tokens"},
      {head + R"(,"size":257,"merges":"ab c\n"})", "merge 1, 'ab c', is not two tokens"},
      {head + R"(,"size":257,"merges":"a b\na b\n"})", "merge 2, 'a b', is a duplicate"},
      {head + R"(,"size":257,"merges":"ab\n"})", "merge 1, 'ab', is not two tokens"},
      {head + R"(,"size":257,"merges":"a  b\n"})", "merge 1, 'a  b', is not two tokens"},
      {head + R"(,"size":257,"merges":"\u4e00 b\n"})", "is not two tokens known before it"},
  };
  for (const Case& c : cases) {
    const std::string message = message_of([&] { Vocabulary::from_json(c.json, "v.json"); });
    EXPECT_NE(message.find(c.part), std::string::npos) << c.json << ": " << message;
  }
}

/// Two ways to one spelling: the token is one, and both merges are kept.
TEST(Bpe, TwoMergesOfOneSpelling) {
  const Bpe bpe = Bpe::from_merges_text("a b\nb c\nab c\na bc\nabc d\n");
  EXPECT_EQ(bpe.size(), 260);
  EXPECT_EQ(bpe.encode("abcd"), (Tokens{259}));
  EXPECT_EQ(bpe.merges_text(), "a b\nb c\nab c\na bc\nabc d\n");
}

}  // namespace
}  // namespace tessera
