// Against what NumPy and megatron-core made: tests/golden/token_files.json, or the file that
// TESSERA_TOKEN_FILES_GOLDEN names, which may have more cases (tools/golden/token_files.py).

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "data/test_data.h"
#include "tessera/base/text.h"
#include "tessera/data/blend.h"
#include "tessera/data/blended_samples.h"
#include "tessera/data/file.h"
#include "tessera/data/gpt_cache.h"
#include "tessera/data/indexed_dataset_writer.h"
#include "tessera/data/left_to_right.h"
#include "tessera/data/masked_words.h"
#include "tessera/data/numpy_random.h"
#include "tessera/data/sentence_map.h"
#include "tessera/data/sentence_pairs.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

using Json = nlohmann::json;
using Longs = std::vector<std::int64_t>;

const Json& golden() {
  static const Json kGolden = [] {
    const char* given = std::getenv("TESSERA_TOKEN_FILES_GOLDEN");
    return Json::parse(
        read_file(given != nullptr ? given : repo_file("tests/golden/token_files.json")));
  }();
  return kGolden;
}

Longs values_of(const IntegerArray& array) {
  Longs out(static_cast<std::size_t>(array.elements()));
  array.read(0, out);
  return out;
}

std::string unhex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

/// Files of one sequence for each length.
void write_token_files(const std::string& prefix, const Json& lengths, const Json& tokens) {
  IndexedDatasetWriter writer(prefix, TokenType::U16);
  std::size_t at = 0;
  for (const std::int32_t length : lengths.get<TokenIds>()) {
    TokenIds ids;
    for (std::int32_t i = 0; i < length; ++i) ids.push_back(tokens[at++].get<std::int32_t>());
    writer.add_document(ids, std::span(&length, 1));
  }
  writer.finish();
}

std::optional<std::int64_t> wanted_of(const Json& c) {
  return c["wanted"].is_null() ? std::nullopt
                               : std::optional<std::int64_t>(c["wanted"].get<std::int64_t>());
}

}  // namespace

TEST(Megatron, RandomState) {
  for (const Json& c : golden()["numpy"]) {
    SCOPED_TRACE(c["seed"].dump());
    NumpyRandom random(c["seed"].get<std::uint32_t>());
    Longs shuffled = c["shuffle"].get<Longs>();
    for (std::size_t i = 0; i < shuffled.size(); ++i) shuffled[i] = static_cast<std::int64_t>(i);
    random.shuffle(std::span(shuffled));
    EXPECT_EQ(Json(shuffled), c["shuffle"]);
    EXPECT_EQ(Json(random.permutation(std::ssize(shuffled))), c["permutation"]);
    for (const Json& value : c["random"]) EXPECT_EQ(random.random(), value.get<double>());
    for (const Json& drawn : c["randint"])
      EXPECT_EQ(random.randint(drawn[0], drawn[1]), drawn[2].get<std::int64_t>());
    for (std::size_t i = 0; i < c["geometric"].size(); ++i)
      EXPECT_EQ(random.geometric(i < 3 ? .2 : i < 6 ? .5 : .01), c["geometric"][i].get<int>());
    const auto p = c["p"].get<std::vector<double>>();
    for (const Json& value : c["choice"]) EXPECT_EQ(random.choice(p), value.get<std::size_t>());
    for (const Json& value : c["choice_plain"]) EXPECT_EQ(random.choice(9), value.get<int>());
    EXPECT_EQ(random.next32(), c["next"].get<std::uint32_t>());
    NumpyRandom of_key(std::span<const std::uint32_t>(c["key"].get<std::vector<std::uint32_t>>()));
    for (const Json& value : c["of_key"]) EXPECT_EQ(of_key.next32(), value.get<std::uint32_t>());
  }
}

TEST(Megatron, BuilderWritesTheSameBytes) {
  const TestFolder folder;
  for (const Json& c : golden()["builder"]) {
    const std::string prefix = folder / "built";
    IndexedDatasetWriter writer(prefix, static_cast<TokenType>(c["type"].get<int>()));
    Longs boundaries = {0};
    for (const Json& document : c["documents"]) {
      for (const Json& sentence : document) writer.add_sequence(sentence.get<TokenIds>());
      writer.end_document();
      boundaries.push_back(writer.num_sequences());
    }
    writer.finish();
    EXPECT_EQ(read_file(prefix + ".bin"), unhex(c["bin"]));
    EXPECT_EQ(read_file(prefix + ".idx"), unhex(c["idx"]));
    const IndexedDataset read(prefix);
    EXPECT_EQ(read.boundaries(), boundaries);
    std::int64_t sequence = 0;
    for (const Json& document : c["documents"]) {
      for (const Json& sentence : document)
        EXPECT_EQ(read.read(sequence++, 1 << 20), sentence.get<TokenIds>());
    }
  }
}

TEST(Megatron, SampleIndices) {
  const TestFolder folder;
  int number = 0;
  for (const Json& c : golden()["gpt"]) {
    SCOPED_TRACE(text("case ", number));
    const std::string prefix = folder / text("gpt", number++);
    write_token_files(prefix, c["lengths"], c["tokens"]);
    GptDatasetChoice choice{static_cast<DataPart>(c["part"].get<int>()),
                            c["split"].get<std::string>(),
                            c["context"].get<std::int64_t>(),
                            c["vocabulary"].get<std::int64_t>(),
                            wanted_of(c),
                            c["seed"].get<std::uint32_t>(),
                            ""};
    std::vector<std::string> notices;
    const auto files = std::make_shared<const IndexedDataset>(prefix);
    for (int start = 0; start < 2; ++start) {  // made, then taken from the cache
      const GptDataset dataset(files, choice, notices);
      const GptIndices& made = dataset.indices();
      EXPECT_EQ(Json(values_of(made.documents)), c["documents"]);
      EXPECT_EQ(Json(values_of(made.samples)), c["rows"]);
      EXPECT_EQ(Json(values_of(made.shuffle)), c["shuffle"]);
      EXPECT_EQ(Json({to_text(made.documents.type()), to_text(made.samples.type()),
                      to_text(made.shuffle.type())}),
                c["types"]);
      for (const Json& sample : c["samples"]) {
        TokenIds ids(static_cast<std::size_t>(choice.context + 1));
        dataset.read(sample[0], ids);
        Json expected = sample;
        expected.erase(0);
        EXPECT_EQ(Json(ids), expected);
      }
    }
    EXPECT_EQ(notices, std::vector<std::string>{});
    std::string description = gpt_description(prefix, choice);
    description.replace(description.find(text("\"", prefix, "\"")), prefix.size() + 2,
                        "\"PREFIX\"");
    EXPECT_EQ(description, c["description"].get<std::string>());
    const std::string base = gpt_cache_base(prefix, choice);
    EXPECT_EQ(read_file(base + "description.txt"), gpt_description(prefix, choice));
    const char* const names[] = {"document_index.npy", "sample_index.npy", "shuffle_index.npy"};
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(read_file(base + names[i]).substr(0, 128), unhex(c["npy"][i]));
  }
}

TEST(Megatron, BlendedDatasets) {
  const TestFolder folder;
  int number = 0;
  for (const Json& c : golden()["blended"]) {
    SCOPED_TRACE(text("case ", number));
    std::vector<std::string> words;
    for (std::size_t i = 0; i < c["files"].size(); ++i) {
      const std::string prefix = folder / text("blend", number, "_", i);
      write_token_files(prefix, c["files"][i]["lengths"], c["files"][i]["tokens"]);
      if (!c["weights"].empty()) words.push_back(c["weights"][i].dump());
      words.push_back(prefix);
    }
    ++number;
    EXPECT_TRUE(names_token_files(words));
    TokenFiles files;
    files.train = open_token_source(words);
    files.split = "1,0,0";
    std::vector<std::string> notices;
    const TokenSamples samples(
        files,
        {.context = c["context"].get<std::int64_t>(), .vocabulary = 1000, .samples = wanted_of(c)},
        notices);
    ASSERT_EQ(samples.size(), std::ssize(c["samples"]));
    for (std::size_t k = 0; k < c["samples"].size(); ++k) {
      TokenIds ids(c["samples"][k].size());
      const auto [dataset, sample] = samples.at(static_cast<std::int64_t>(k));
      dataset.read(sample, ids);
      EXPECT_EQ(Json(ids), c["samples"][k]) << "sample " << k;
    }
  }
}

TEST(Megatron, BlendingIndices) {
  for (const Json& c : golden()["blending"]) {
    const auto weights = normalised(c["raw"].get<std::vector<double>>());
    EXPECT_EQ(weights, c["weights"].get<std::vector<double>>());
    const std::int64_t size = std::ssize(c["datasets"]);
    const BlendIndices made = blend_by_weight(weights, size);
    EXPECT_EQ(Json(values_of(made.datasets)), c["datasets"]);
    EXPECT_EQ(Json(values_of(made.samples)), c["samples"]);
    const BlendIndices all = blend_all(c["sizes"].get<Longs>());
    EXPECT_EQ(Json(values_of(all.datasets)), c["all_datasets"]);
    EXPECT_EQ(Json(values_of(all.samples)), c["all_samples"]);
    EXPECT_EQ(Json(samples_of_parts(weights, size, kBlendSurplus)), c["asked"]);
    EXPECT_EQ(Json(samples_of_parts(weights, size)), c["wanted"]);
  }
}

TEST(Megatron, Splits) {
  for (const Json& c : golden()["split"]) {
    SCOPED_TRACE(c["split"].dump());
    const SplitShares shares = parse_split(c["split"].get<std::string>());
    for (const DataPart part : {DataPart::Train, DataPart::Valid, DataPart::Test}) {
      const auto [first, last] = shares.range(part, c["count"]);
      const Json& expected = c["ranges"][static_cast<std::size_t>(part)];
      EXPECT_EQ(Json({first, last}), expected);
    }
  }
}

namespace {

WordPieces word_pieces_of(std::int32_t size) {
  WordPieces out;
  for (std::int32_t i = 0; i < size; ++i) out.ids.push_back(i);
  out.continues = [](std::int32_t id) { return id >= 5 && id % 7 == 0; };
  out.cls = 2, out.sep = 3, out.mask = 4, out.pad = 0;
  out.begin = size, out.end = size + 1;
  for (std::int32_t i = 0; i < 40; ++i) out.sentinels.push_back(size + 2 + i);
  return out;
}

MaskingOptions options_of(const Json& c) {
  const Json& o = c["options"];
  return {o["masking_probability"], o["masking_max_ngram"], o["masking_do_full_word"],
          o["masking_use_longer_ngrams"], o["masking_use_geometric_distribution"]};
}

/// The map of a case, and its samples, each handed with its sentences and target to `compare`.
template <typename Compare>
void each_masked_sample(const Json& c, std::int64_t special, const Compare& compare) {
  std::vector<TokenIds> sentences;
  std::vector<std::int32_t> lengths;
  Longs documents = {0};
  for (const Json& document : c["documents"]) {
    for (const Json& sentence : document) {
      sentences.push_back(sentence.get<TokenIds>());
      lengths.push_back(static_cast<std::int32_t>(sentence.size()));
    }
    documents.push_back(std::ssize(sentences));
  }
  const auto context = c["context"].get<std::int64_t>();
  const auto seed = c["seed"].get<std::uint32_t>();
  const IntegerArray made =
      sentence_map({context - special, c["two_parts"] ? 2 : 1,
                    c["options"]["short_sequence_probability"], wanted_of(c), seed},
                   documents, lengths);
  const Longs map = values_of(made);
  ASSERT_EQ(Json(map), c["map"]);
  for (const Json& sample : c["samples"]) {
    const auto k = sample[0].get<std::size_t>();
    SCOPED_TRACE(text("sample ", k));
    const auto first = static_cast<std::size_t>(map[3 * k]),
               last = static_cast<std::size_t>(map[3 * k + 1]);
    compare(std::span<const TokenIds>(sentences).subspan(first, last - first), map[3 * k + 2],
            context, seed + static_cast<std::uint32_t>(k), sample[1]);
  }
}

}  // namespace

TEST(Megatron, BertSamples) {
  for (const Json& c : golden()["bert"]) {
    const WordPieces pieces = word_pieces_of(c["vocabulary"]);
    each_masked_sample(c, 3,
                       [&](std::span<const TokenIds> sentences, std::int64_t target,
                           std::int64_t context, std::uint32_t seed, const Json& expected) {
                         const BertSample made =
                             bert_sample(sentences, target, context, c["two_parts"], pieces,
                                         options_of(c), seed);
                         EXPECT_EQ(Json(made.ids), expected["text"]);
                         EXPECT_EQ(Json(made.types), expected["types"]);
                         EXPECT_EQ(Json(made.labels), expected["labels"]);
                         EXPECT_EQ(Json(made.loss_mask), expected["loss_mask"]);
                         EXPECT_EQ(Json(made.padding_mask), expected["padding_mask"]);
                         EXPECT_EQ(made.exchanged ? 1 : 0, expected["is_random"].get<int>());
                         EXPECT_EQ(made.truncated ? 1 : 0, expected["truncated"].get<int>());
                       });
  }
}

TEST(Megatron, T5Samples) {
  for (const Json& c : golden()["t5"]) {
    const WordPieces pieces = word_pieces_of(c["vocabulary"]);
    each_masked_sample(c, 2,
                       [&](std::span<const TokenIds> sentences, std::int64_t target,
                           std::int64_t context, std::uint32_t seed, const Json& expected) {
                         const auto make = [&] {
                           return t5_sample(sentences, target, context, context, pieces,
                                            options_of(c), seed);
                         };
                         if (expected.is_null()) {
                           EXPECT_THROW(make(), Error);
                           return;
                         }
                         const T5Sample made = make();
                         EXPECT_EQ(Json(made.source), expected["text_enc"]);
                         EXPECT_EQ(Json(made.written), expected["text_dec"]);
                         EXPECT_EQ(Json(made.labels), expected["labels"]);
                         EXPECT_EQ(Json(made.loss_mask), expected["loss_mask"]);
                         EXPECT_EQ(Json(made.source_mask), expected["enc_mask"]);
                         EXPECT_EQ(Json(made.written_mask), expected["dec_mask"]);
                         EXPECT_EQ(made.truncated ? 1 : 0, expected["truncated"].get<int>());
                       });
  }
}

namespace {

/// A vocab.txt of `size` tokens; every seventh goes on a word, as in word_pieces_of().
Vocabulary numbered_pieces(std::int32_t size) {
  std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (std::int32_t i = 5; i < size; ++i) lines += text(i % 7 == 0 ? "##p" : "p", i, "\n");
  return Vocabulary::tokenizer(Tokenizer::of({{"vocab.txt", lines}}, "test"));
}

/// Inputs of a batch of `count` samples, by name.
std::map<std::string, TokenIds> pairs_batch(const Samples& samples, std::int64_t count,
                                            std::int64_t context, std::int64_t predicted) {
  std::map<std::string, TokenIds> out;
  BatchInputs inputs("test");
  const auto add = [&](const char* name, std::int64_t columns) {
    TokenIds& values = out[name];
    values.resize(static_cast<std::size_t>(count * columns), -7);
    inputs.add(name, {DType::I32, {count, columns}, {}},
               std::as_writable_bytes(std::span(values)).data());
  };
  for (const char* name : {"ids", "types", "mask"}) add(name, context);
  add("labels", predicted > 0 ? predicted : context);
  add("next", 1);
  if (predicted > 0) add("masked_positions", predicted);
  inputs.begin();
  samples.fill(0, count, inputs);
  inputs.require_filled();
  return out;
}

}  // namespace

TEST(Megatron, BatchesOfSentencePairs) {
  const TestFolder folder;
  int number = 0;
  for (const Json& c : golden()["sentence_pairs"]) {
    SCOPED_TRACE(text("case ", number));
    std::vector<std::string> words;
    for (std::size_t i = 0; i < c["files"].size(); ++i) {
      const std::string prefix = folder / text("pairs", number, "_", i);
      IndexedDatasetWriter writer(prefix, TokenType::U16);
      for (const Json& document : c["files"][i]) {
        for (const Json& sentence : document) writer.add_sequence(sentence.get<TokenIds>());
        writer.end_document();
      }
      writer.finish();
      if (!c["weights"].empty()) words.push_back(c["weights"][i].dump());
      words.push_back(prefix);
    }
    ++number;
    TokenFiles files;
    files.train = open_token_source(words);
    files.split = c["split"].get<std::string>();
    const auto context = c["context"].get<std::int64_t>(), size = c["size"].get<std::int64_t>(),
               most = (context - 3) * 15 / 100;
    const Vocabulary vocabulary = numbered_pieces(c["vocabulary"]);
    SentencePairsOptions options{.choice = {static_cast<DataPart>(c["part"].get<int>()), context,
                                            vocabulary.size(), wanted_of(c),
                                            c["seed"].get<std::uint32_t>()}};
    for (const std::int64_t predicted : {std::int64_t{0}, most + 1}) {
      options.masked_positions = predicted;
      const auto samples = sentence_pairs(files, vocabulary, options);
      if (options.choice.part != DataPart::Train) {
        EXPECT_EQ(samples->size(), size);
      }
      const auto count = static_cast<std::int64_t>(c["samples"].size());
      const auto batch = pairs_batch(*samples, count, context, predicted);
      for (std::int64_t k = 0; k < count; ++k) {
        SCOPED_TRACE(text("sample ", k));
        const Json& expected = c["samples"][static_cast<std::size_t>(k)];
        const auto row = [&](const char* name, std::int64_t columns) {
          const TokenIds& all = batch.at(name);
          return TokenIds(all.begin() + k * columns, all.begin() + (k + 1) * columns);
        };
        for (const char* name : {"ids", "types", "mask"})
          EXPECT_EQ(Json(row(name, context)), expected[name]) << name;
        EXPECT_EQ(row("next", 1)[0], expected["next"].get<int>());
        TokenIds labels(static_cast<std::size_t>(context), kIgnoredLabel);
        if (predicted == 0) {
          labels = row("labels", context);
        } else {
          const TokenIds at = row("masked_positions", predicted), what = row("labels", predicted);
          for (std::size_t i = 0; i < at.size(); ++i) {
            if (what[i] != kIgnoredLabel) labels[static_cast<std::size_t>(at[i])] = what[i];
          }
        }
        std::ranges::replace(labels, kIgnoredLabel, -1);  // as megatron-core has it
        EXPECT_EQ(Json(labels), expected["labels"]);
      }
    }
    options.masked_positions = most - 1;
    if (most < 2) continue;
    EXPECT_NE(message_of([&] {
                sentence_pairs(files, vocabulary, options);
              }).find(text("masked-positions is ", most - 1, ", but")),
              std::string::npos);
  }
}

TEST(Megatron, SentencePairsNeedSentencesAndATokenizer) {
  const TestFolder folder;
  IndexedDatasetWriter writer(folder / "plain", TokenType::U16);
  for (int i = 0; i < 4; ++i) writer.add_document(TokenIds{5, 6}, TokenIds{2});
  writer.finish();
  TokenFiles files;
  files.train = open_token_source(std::vector{folder / "plain"});
  const SentencePairsOptions options{.choice = {.context = 16, .vocabulary = 40}};
  EXPECT_NE(message_of([&] {
              sentence_pairs(files, numbered_pieces(40), options);
            }).find("have 4 sequences in 4 documents, and samples of sentences need a sequence"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              sentence_pairs(files, Vocabulary::ids(40), options);
            }).find("need the files' tokenizer, with [PAD], [CLS], [SEP] and [MASK], and none"),
            std::string::npos);
  EXPECT_EQ(
      message_of([&] { sentence_pairs(files, numbered_pieces(40), {.choice = {.context = 9}}); }),
      "context is 9, of which megatron-core masks no token; give at least 10");
}

TEST(Megatron, MasksAndPositions) {
  for (const Json& c : golden()["left_to_right"]) {
    const auto ids = c["ids"].get<TokenIds>();
    const LeftToRightOptions options{9, c["reset_positions"], c["reset_attention"], c["mask_loss"]};
    TokenIds positions(ids.size()), first_seen(ids.size());
    std::vector<std::uint8_t> counts(ids.size());
    left_to_right(ids, options, positions, first_seen, counts);
    EXPECT_EQ(Json(positions), c["positions"]);
    EXPECT_EQ(Json(counts), c["counts"]);
    for (std::size_t q = 0; q < ids.size(); ++q) {
      for (std::size_t k = 0; k < ids.size(); ++k)
        EXPECT_EQ(k > q || static_cast<std::int32_t>(k) < first_seen[q] ? 1 : 0,
                  c["mask"][q][k].get<int>())
            << "query " << q << ", key " << k;
    }
  }
}

}  // namespace tessera
