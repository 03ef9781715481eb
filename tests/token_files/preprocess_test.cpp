#include "tessera/token_files/preprocess.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/files/json_lines.h"
#include "tessera/token_files/indexed_dataset.h"
#include "tessera/token_files/sentences.h"

namespace tessera {

namespace {

PreprocessRequest request_for(const TestFolder& folder, const std::string& lines) {
  write_atomically(folder / "in.jsonl", lines);
  PreprocessRequest out;
  out.inputs = {folder / "in.jsonl"};
  out.output_prefix = folder / "out";
  out.overwrite = true;
  return out;
}

std::string text_of_sequence(const IndexedDataset& data, std::int64_t sequence) {
  std::string out;
  for (const std::int32_t id : data.read(sequence, 257))
    out += id == 256 ? "<eod>" : std::string(1, static_cast<char>(id));
  return out;
}

}  // namespace

TEST(Preprocess, EveryLineIsADocument) {
  const TestFolder folder;
  PreprocessRequest request =
      request_for(folder,
                  "{\"id\": 1, \"text\": \"one\", \"more\": {\"text\": [\"not this\"]}}\r\n\n"
                  "{\"text\": \"\"}\n{\"text\": [\"a\", \"\", \"b\"]}\n{\"text\": \"\\u00e9\"}");
  request.append_eod = true;
  const PreprocessReport report = preprocess(request);
  ASSERT_EQ(report.outputs.size(), 1u);
  EXPECT_EQ(report.outputs[0].documents, 4);
  EXPECT_EQ(report.outputs[0].empty_documents, 1);
  EXPECT_EQ(report.vocabulary, 257);
  EXPECT_EQ(report.token_type, "uint16");
  const IndexedDataset data(folder / "out_text_document");
  EXPECT_EQ(data.boundaries(), (std::vector<std::int64_t>{0, 1, 1, 3, 4}));
  EXPECT_EQ(text_of_sequence(data, 0), "one<eod>");
  EXPECT_EQ(text_of_sequence(data, 1), "a");
  EXPECT_EQ(text_of_sequence(data, 2), "b<eod>");
  EXPECT_EQ(text_of_sequence(data, 3), "\u00e9<eod>");
}

TEST(Preprocess, DoesNotDependOnTheNumberOfWorkers) {
  const TestFolder folder;
  std::string lines;
  for (int i = 0; i < 40000; ++i)  // some blocks
    lines += text("{\"text\": \"Line ", i, ". ", std::string(static_cast<std::size_t>(i % 97), 'x'),
                  " End. \", \"title\": \"", i, "\"}\n");
  PreprocessRequest request = request_for(folder, lines);
  request.keys = {"text", "title"};
  request.split_sentences = true;
  std::string first;
  for (const std::int64_t workers : {1, 2, 7}) {
    request.workers = workers;
    preprocess(request);
    std::string all;
    for (const char* key : {"text", "title"}) {
      for (const char* ending : {".bin", ".idx"})
        all += read_file(folder / text("out_", key, "_sentence", ending));
    }
    if (first.empty()) first = all;
    EXPECT_TRUE(all == first) << workers << " workers";
  }
}

TEST(Preprocess, RefusesWithTheLine) {
  const struct {
    const char* name;
    std::string lines;
    const char* says;
  } cases[] = {
      {"no JSON", "{\"text\": \"a\"}\n{\"text\": \"b\n", "in.jsonl' line 2, byte"},
      {"no object", "[1]\n", "line 1 is JSON, but not an object"},
      {"a number alone", "3\n", "line 1 is JSON, but not an object"},
      {"no key", "{\"txt\": \"a\", \"id\": 3}\n", "has no key 'text'; its keys are txt, id"},
      {"another kind", "{\"text\": 3}\n", "key 'text' is a number"},
      {"a list with another kind", "{\"text\": [\"a\", {}]}\n",
       "key 'text' is a list with an object"},
      {"a list in a list", "{\"text\": [[\"a\"]]}\n", "is a list with a list"},
      {"bad UTF-8", "{\"text\": \"\xff\"}\n", "line 1, byte"},
      {"half a code point", "{\"text\": \"\\ud800\"}\n", "line 1, byte"},
      {"nothing at all", "{\"text\": \"\"}\n", "has no token in 1 document"},
      {"text behind", "{\"text\": \"a\"} x\n", "line 1, byte"},
      {"deep", std::string(200000, '[') + "\n", "line 1 is JSON, but not an object"},
      {"deep inside", "{\"x\": " + std::string(200000, '[') + "\n", "line 1, byte"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const TestFolder folder;
    const PreprocessRequest request = request_for(folder, c.lines);
    const std::string says = message_of([&] { preprocess(request); });
    EXPECT_NE(says.find(c.says), std::string::npos) << says.substr(0, 500);
    EXPECT_FALSE(std::filesystem::exists(folder / "out_text_document.bin"));
    EXPECT_FALSE(std::filesystem::exists(folder / "out_text_document.idx"));
  }
}

TEST(Preprocess, RefusesARequestThatCannotBe) {
  const TestFolder folder;
  const PreprocessRequest good = request_for(folder, "{\"text\": \"a b\"}\n");
  const auto says = [&](const auto& change) {
    PreprocessRequest request = good;
    change(request);
    return message_of([&] { preprocess(request); });
  };
  using Request = PreprocessRequest;
  EXPECT_EQ(says([](Request& r) {
              r.keys = {"a", "b", "a"};
            }),
            "json-keys names 'a' twice; give each key once");
  EXPECT_NE(says([](Request& r) { r.encoder.type = "gpt5"; }).find("it can be bytes"),
            std::string::npos);
  EXPECT_NE(says([](Request& r) { r.encoder.vocab_file = "v"; }).find("takes no vocab-file"),
            std::string::npos);
  EXPECT_NE(says([](Request& r) { r.encoder.type = "bpe"; }).find("vocab-size is 0"),
            std::string::npos);
  EXPECT_NE(says([](Request& r) { r.encoder.type = "NullTokenizer"; }).find("needs vocab-size"),
            std::string::npos);
  EXPECT_EQ(says([](Request&) {}), "");
  EXPECT_NE(says([](Request& r) { r.overwrite = false; }).find("exists; give another"),
            std::string::npos);
}

TEST(Preprocess, VocabulariesAreLearnedAndTakenUpAgain) {
  const TestFolder folder;
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "{\"text\": \"the theme of the thesis\"}\n";
  for (const char* type : {"characters", "bpe"}) {
    PreprocessRequest request = request_for(folder, lines);
    request.encoder.type = type;
    request.encoder.vocab_size = 300;
    const PreprocessReport learned = preprocess(request);
    const std::string ids = read_file(folder / "out_text_document.bin");
    ASSERT_NE(learned.vocabulary_file, "");
    request.encoder.vocab_file = learned.vocabulary_file;
    const PreprocessReport again = preprocess(request);
    EXPECT_EQ(again.vocabulary, learned.vocabulary);
    EXPECT_EQ(again.vocabulary_file, "");
    EXPECT_EQ(read_file(folder / "out_text_document.bin"), ids);
  }
  PreprocessRequest request = request_for(folder, "{\"text\": \"7 12 \\n3\"}\n");
  request.encoder.type = "NullTokenizer";
  request.encoder.vocab_size = 13;
  request.append_eod = true;
  preprocess(request);
  EXPECT_EQ(IndexedDataset(folder / "out_text_document").read(0, 14),
            (std::vector<std::int32_t>{7, 12, 3, 13}));
  request.encoder.vocab_size = 12;
  EXPECT_NE(message_of([&] { preprocess(request); }).find("word '12' at byte 2"),
            std::string::npos);
}

TEST(Preprocess, TokenizersOfMegatron) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "gpt2");
  std::filesystem::create_directories(folder / "bert");
  write_atomically(folder / "gpt2/vocab.json",
                   "{\"a\":0,\"b\":1,\"\u0120\":2,\"ab\":3,\"\u0120ab\":4,\"<|endoftext|>\":5}");
  write_atomically(folder / "gpt2/merges.txt", "#version: 0.2\na b\n\u0120 ab\n");
  write_atomically(folder / "bert/vocab.txt",
                   "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n##a\nb\nAb\n##B\n");
  using Ids = std::vector<std::int32_t>;
  const struct {
    const char* type;
    std::string vocab, merges, path;
    Ids ids;  // of the first text, its end among them
    std::int64_t size;
  } cases[] = {
      {"GPT2BPETokenizer", folder / "gpt2/vocab.json", folder / "gpt2/merges.txt", "",
       Ids{3, 4, 0, 2, 2, 5}, 6},
      {"HuggingFaceTokenizer", "", "", folder / "gpt2", Ids{3, 4, 0, 2, 2, 5}, 6},
      {"BertWordPieceLowerCase", folder / "bert/vocab.txt", "", "", Ids{5, 5, 6, 5, 3}, 10},
      {"BertWordPieceCase", folder / "bert/vocab.txt", "", "", Ids{5, 5, 6, 1, 3}, 10},
      {"HuggingFaceTokenizer", "", "", folder / "bert/vocab.txt", Ids{5, 5, 6, 1, 3}, 10},
  };
  std::string lines = "{\"text\": \"ab aba  AB\"}\n";
  for (int i = 0; i < 3; ++i) lines += lines;
  for (const auto& c : cases) {
    SCOPED_TRACE(text(c.type, " ", c.path));
    PreprocessRequest request = request_for(folder, lines);
    request.append_eod = true;
    request.encoder = {c.type, c.vocab, c.merges, c.path, 0, {}};
    std::string first;
    for (const std::int64_t workers : {1, 2}) {
      request.workers = workers;
      const PreprocessReport report = preprocess(request);
      EXPECT_EQ(report.vocabulary, c.size);
      EXPECT_EQ(report.end_of_document, text(c.ids.back()));
      const std::string bytes = read_file(folder / "out_text_document.bin");
      if (first.empty()) first = bytes;
      EXPECT_EQ(bytes, first);
    }
    const IndexedDataset written(folder / "out_text_document");
    EXPECT_EQ(written.num_documents(), 8);
    EXPECT_EQ(written.read(7, c.size), c.ids);
  }
}

TEST(Preprocess, TokenizersNeedTheirFiles) {
  const TestFolder folder;
  const struct {
    const char *type, *vocab, *merges, *path, *says;
  } cases[] = {
      {"GPT2BPETokenizer", "v", "", "", "needs merge-file, which is missing; give the merges.txt"},
      {"GPT2BPETokenizer", "", "m", "", "needs vocab-file"},
      {"GPT2BPETokenizer", "v", "m", "p",
       "takes vocab-file, merge-file only, but tokenizer-model"},
      {"BertWordPieceCase", "v", "m", "", "takes vocab-file only, but merge-file is 'm'"},
      {"Llama2Tokenizer", "v", "", "p", "takes tokenizer-model only, but vocab-file is 'v'"},
      {"HuggingFaceTokenizer", "", "", "",
       "needs tokenizer-model, which is missing; give its file"},
      {"HuggingFaceTokenizer", "", "", "gone", "there is no tokenizer 'gone'"},
      {"bytes", "", "", "p", "takes no tokenizer-model, but 'p' is given"},
      {"Gpt2BpeTokenizer", "v", "m", "", "is 'Gpt2BpeTokenizer'; it can be bytes"},
  };
  for (const auto& c : cases) {
    PreprocessRequest request = request_for(folder, "{\"text\": \"ab\"}\n");
    request.encoder = {c.type, c.vocab, c.merges, c.path, 0, {}};
    const std::string says = message_of([&] { preprocess(request); });
    EXPECT_NE(says.find(c.says), std::string::npos) << says;
  }
}

TEST(LineBlocks, NumberLinesAcrossBlocksAndFiles) {
  const TestFolder folder;
  write_atomically(folder / "a",
                   "\xEF\xBB\xBF"
                   "1\n" +
                       std::string(100, 'x') + "\n3");
  write_atomically(folder / "b", "");
  write_atomically(folder / "c", "1\n\n3\n");
  const std::vector<std::string> paths = {folder / "a", folder / "b", folder / "c"};
  for (const std::int64_t bytes : {1, 2, 7, 1000}) {
    LineBlocks blocks(paths, bytes);
    LineBlock block;
    std::vector<std::string> seen;
    while (blocks.next(block)) {
      for_each_line(block, [&](std::string_view line, const LinePlace& place) {
        seen.push_back(text(place.path->back(), place.line, ":", line.size()));
      });
    }
    EXPECT_EQ(join(seen), "a1:1, a2:100, a3:1, c1:1, c3:1") << bytes;
  }
}

TEST(LineBlocks, LinesHaveALimit) {
  const TestFolder folder;
  write_atomically(folder / "a",
                   "1\n2\n" + std::string(static_cast<std::size_t>(kMostLineBytes) + 1, 'x'));
  const std::vector<std::string> paths = {folder / "a"};
  LineBlocks blocks(paths);
  LineBlock block;
  ASSERT_TRUE(blocks.next(block));
  const std::string message = message_of([&] { blocks.next(block); });
  EXPECT_NE(message.find("/a' line 3: a line of more than 64.0 MiB begins here"), std::string::npos)
      << message;
}

TEST(Sentences, EndWhereARuleSaysSo) {
  const struct {
    const char *why, *text, *sentences;
  } cases[] = {
      {"a period and a capital", "One two. Three four.", "One two.|Three four."},
      {"any question", "Who? me! yes", "Who?|me!|yes"},
      {"quotes close with the sentence", "\"Go.\" He went.", "\"Go.\"|He went."},
      {"a title", "Mr. Smith met Dr. No. He left.", "Mr. Smith met Dr. No.|He left."},
      {"initials", "J. R. R. Tolkien wrote. So he did.", "J. R. R. Tolkien wrote.|So he did."},
      {"letters with periods", "The U.S. Army came. In the U.S. He stayed.",
       "The U.S. Army came.|In the U.S.|He stayed."},
      {"numbers", "It is 3.14 or so. No. 5 is alive.", "It is 3.14 or so.|No. 5 is alive."},
      {"a small letter goes on", "e.g. this one. and that. Yes.", "e.g. this one. and that.|Yes."},
      {"an ellipsis", "Well... maybe. Well... Maybe.", "Well... maybe.|Well...|Maybe."},
      {"newlines are blanks", "One.\nTwo\n\nthree.", "One.|Two\n\nthree."},
      {"no sentence", "  \n ", ""},
      {"no end", "no end", "no end"},
      {"signs alone", "... ?! ", "... ?!"},
  };
  for (const auto& c : cases) EXPECT_EQ(join(sentences_of(c.text), "|"), c.sentences) << c.why;
  EXPECT_EQ(join(sentences_of(" One.\n\nTwo. ", true), "|"), "One.\n\n|Two. ");
}

}  // namespace tessera
