// Against what NumPy and megatron-core made: tests/golden/token_files.json, or the file that
// TESSERA_TOKEN_FILES_GOLDEN names, which may have more cases (tools/golden/token_files.py).

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "files/test_data.h"
#include "tessera/base/md5.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/token_files/blend.h"
#include "tessera/token_files/blended_samples.h"
#include "tessera/token_files/index_sets.h"
#include "tessera/token_files/indexed_dataset_writer.h"
#include "tessera/token_files/left_to_right.h"
#include "tessera/token_files/masked_words.h"
#include "tessera/token_files/numpy_random.h"
#include "tessera/token_files/sentence_dataset.h"
#include "tessera/token_files/sentence_map.h"
#include "tessera/token_files/sentence_pairs.h"
#include "tessera/token_files/sentence_spans.h"

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

/// Files of a sequence for each sentence, named as c says, with weights where it has some.
std::vector<std::string> write_sentence_files(const Json& c, const std::string& begin) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < c["files"].size(); ++i) {
    const std::string prefix = text(begin, "_", i);
    IndexedDatasetWriter writer(prefix, TokenType::U16);
    for (const Json& document : c["files"][i]) {
      for (const Json& sentence : document) writer.add_sequence(sentence.get<TokenIds>());
      writer.end_document();
    }
    writer.finish();
    if (!c["weights"].empty()) words.push_back(c["weights"][i].dump());
    words.push_back(prefix);
  }
  return words;
}

/// The files of a set of indices, by what their names begin with, are those that megatron-core
/// wrote.
void expect_kept(const std::string& base, const std::vector<std::string>& prefixes,
                 const Json& kept) {
  std::string description = read_file(base + "description.txt");
  EXPECT_EQ(std::filesystem::path(base).filename().string().substr(0, 32), md5_text(description));
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const std::string name = text("\"", prefixes[i], "\"");
    for (std::size_t at; (at = description.find(name)) != std::string::npos;)
      description.replace(at, name.size(), text("\"PREFIX", i, "\""));
  }
  EXPECT_EQ(description, kept["description"].get<std::string>());
  for (const auto& [name, md5] : kept["files"].items())
    EXPECT_EQ(md5_text(read_file(base + name)), md5.get<std::string>()) << name;
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
    const IndexSet set = gpt_index_set(prefix, choice);
    std::string description = set.description;
    description.replace(description.find(text("\"", prefix, "\"")), prefix.size() + 2,
                        "\"PREFIX\"");
    EXPECT_EQ(description, c["description"].get<std::string>());
    const std::string base = index_base(set);
    EXPECT_EQ(read_file(base + "description.txt"), set.description);
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
    std::vector<std::string> words, prefixes;
    for (std::size_t i = 0; i < c["files"].size(); ++i) {
      prefixes.push_back(folder / text("blend", number, "_", i));
      write_token_files(prefixes.back(), c["files"][i]["lengths"], c["files"][i]["tokens"]);
      if (!c["weights"].empty()) words.push_back(c["weights"][i].dump());
      words.push_back(prefixes.back());
    }
    ++number;
    EXPECT_TRUE(names_token_files(words));
    TokenFiles files;
    files.train = open_token_source(words);
    files.split = "1,0,0";
    const TokenSampleChoice choice{
        .context = c["context"].get<std::int64_t>(), .vocabulary = 1000, .samples = wanted_of(c)};
    std::vector<std::string> notices;
    const std::string cache = folder / text("kept", number), deep(300'000, '[');
    std::filesystem::create_directory(cache);  // with a file of another's
    std::ofstream(cache + "/0-GPTDataset-train-description.txt")
        << deep << std::string(300'000, ']');
    for (const std::string& kept : {std::string(), cache, cache}) {  // made, made, from files
      files.cache = kept;
      const TokenSamples samples(files, choice, notices);
      ASSERT_EQ(samples.size(), std::ssize(c["samples"]));
      for (std::size_t k = 0; k < c["samples"].size(); ++k) {
        TokenIds ids(c["samples"][k].size());
        const auto [dataset, sample] = samples.at(static_cast<std::int64_t>(k));
        dataset.read(sample, ids);
        EXPECT_EQ(Json(ids), c["samples"][k]) << "sample " << k;
      }
      EXPECT_EQ(notices, std::vector<std::string>{});
    }
    int blends = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache)) {
      const std::string path = entry.path().string(), end = "description.txt";
      if (!path.ends_with("-BlendedDataset-train-" + end)) continue;
      expect_kept(path.substr(0, path.size() - end.size()), prefixes, c["kept"]);
      ++blends;
    }
    EXPECT_EQ(blends, 1);
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
  const SentenceMapRequest request{context - special, c["two_parts"] ? 2 : 1,
                                   c["options"]["short_sequence_probability"], wanted_of(c), seed};
  const auto walk = [&](OnDocument on_document) {
    for (std::size_t d = 0; d + 1 < documents.size(); ++d)
      on_document(documents[d], std::span(lengths).subspan(
                                    static_cast<std::size_t>(documents[d]),
                                    static_cast<std::size_t>(documents[d + 1] - documents[d])));
  };
  const Longs map = values_of(sentence_map(request, std::ssize(lengths), walk));
  ASSERT_EQ(Json(map), c["map"]);
  EXPECT_EQ(sentence_map_size(request, walk), std::ssize(map) / 3);
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

using BatchColumns = std::vector<std::pair<const char*, std::int64_t>>;

/// Inputs of a batch of `count` samples, by name.
std::map<std::string, TokenIds> sample_batch(const Samples& samples, std::int64_t count,
                                             const BatchColumns& columns) {
  std::map<std::string, TokenIds> out;
  BatchInputs inputs("test");
  for (const auto& [name, width] : columns) {
    TokenIds& values = out[name];
    values.resize(static_cast<std::size_t>(count * width), -7);
    inputs.add(name, {DType::I32, {count, width}, {}},
               std::as_writable_bytes(std::span(values)).data());
  }
  inputs.begin();
  samples.fill(0, count, inputs);
  inputs.require_filled();
  return out;
}

TokenFiles sentence_files(const Json& c, const std::string& prefix) {
  TokenFiles out;
  out.train = open_token_source(write_sentence_files(c, prefix));
  out.split = c["split"].get<std::string>();
  return out;
}

TokenIds row_of(const TokenIds& all, std::int64_t row, std::int64_t columns) {
  return {all.begin() + row * columns, all.begin() + (row + 1) * columns};
}

/// The maps of all files are those that megatron-core wrote.
void expect_kept_maps(const TokenFiles& files, const TokenSampleChoice& choice, const Json& kept) {
  const auto choices = choices_of_files(files, files.train, choice);
  ASSERT_EQ(choices.size(), kept.size());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::string& prefix = files.train.files[i]->prefix();
    expect_kept(index_base(sentence_index_set(prefix, choices[i])), {prefix}, kept[i]);
  }
}

}  // namespace

TEST(Megatron, BatchesOfSentencePairs) {
  const TestFolder folder;
  int number = 0;
  for (const Json& c : golden()["sentence_pairs"]) {
    SCOPED_TRACE(text("case ", number));
    const TokenFiles files = sentence_files(c, folder / text("pairs", number++));
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
      BatchColumns columns = {{"ids", context}, {"types", context}, {"mask", context}, {"next", 1}};
      columns.emplace_back("labels", predicted > 0 ? predicted : context);
      if (predicted > 0) columns.emplace_back("masked_positions", predicted);
      const auto batch = sample_batch(*samples, count, columns);
      EXPECT_EQ(samples->notice(), "");
      expect_kept_maps(files, options.choice, c["kept"]);
      for (std::int64_t k = 0; k < count; ++k) {
        SCOPED_TRACE(text("sample ", k));
        const Json& expected = c["samples"][static_cast<std::size_t>(k)];
        const auto row = [&](const char* name, std::int64_t columns) {
          return row_of(batch.at(name), k, columns);
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

namespace {

/// The same with a start, an end and so many sentinels behind it.
Vocabulary pieces_and_sentinels(std::int32_t size, std::int32_t sentinels) {
  std::string lines = numbered_pieces(size).made_elsewhere()->files().at("vocab.txt");
  lines += "[BOS]\n[EOS]\n";
  for (std::int32_t i = 0; i < sentinels; ++i) lines += text("<extra_id_", i, ">\n");
  return Vocabulary::tokenizer(Tokenizer::of({{"vocab.txt", lines}}, "test"));
}

}  // namespace

TEST(Megatron, BatchesOfSentenceSpans) {
  const TestFolder folder;
  int number = 0;
  for (const Json& c : golden()["sentence_spans"]) {
    SCOPED_TRACE(text("case ", number));
    const TokenFiles files = sentence_files(c, folder / text("spans", number++));
    const auto context = c["context"].get<std::int64_t>(),
               written = c["written"].get<std::int64_t>();
    const auto size = c["vocabulary"].get<std::int32_t>();
    const Vocabulary vocabulary = pieces_and_sentinels(size, 40);
    const SentenceSpansOptions options{
        .choice = {static_cast<DataPart>(c["part"].get<int>()), context, vocabulary.size(),
                   wanted_of(c), c["seed"].get<std::uint32_t>(), written},
        .pad = 0,
        .start = size,
        .end = size + 1};
    for (int start = 0; start < 2; ++start) {  // the maps are made, then taken from the cache
      const auto samples = sentence_spans(files, vocabulary, options);
      if (options.choice.part != DataPart::Train) {
        EXPECT_EQ(samples->size(), c["size"].get<std::int64_t>());
      }
      const auto count = static_cast<std::int64_t>(c["samples"].size());
      const auto batch = sample_batch(*samples, count,
                                      {{"source", context}, {"ids", written}, {"labels", written}});
      expect_kept_maps(files, options.choice, c["kept"]);
      for (std::int64_t k = 0; k < count; ++k) {
        SCOPED_TRACE(text("sample ", k));
        const Json& expected = c["samples"][static_cast<std::size_t>(k)];
        const auto row = [&](const char* name, std::int64_t columns) {
          return row_of(batch.at(name), k, columns);
        };
        // What the model sees as padding.
        const auto mask_of = [](TokenIds ids) {
          for (std::int32_t& id : ids) id = id == 0 ? 0 : 1;
          return ids;
        };
        TokenIds labels = row("labels", written);
        std::ranges::replace(labels, kIgnoredLabel, -1);  // as megatron-core has it
        EXPECT_EQ(Json(row("source", context)), expected["source"]);
        EXPECT_EQ(Json(row("ids", written)), expected["ids"]);
        EXPECT_EQ(Json(labels), expected["labels"]);
        EXPECT_EQ(Json(mask_of(row("source", context))), expected["source_mask"]);
        EXPECT_EQ(Json(mask_of(row("ids", written))), expected["ids_mask"]);
      }
    }
  }
}

TEST(Megatron, SentenceSpansNeedSentinelsAndRoom) {
  const TestFolder folder;
  IndexedDatasetWriter writer(folder / "spans", TokenType::U16);
  for (std::int32_t d = 0; d < 4; ++d) {
    for (std::int32_t s = 0; s < 4; ++s) writer.add_sequence(TokenIds(20, 8 + (d + s) % 5));
    writer.end_document();
  }
  writer.finish();
  TokenFiles files;
  files.train = open_token_source(std::vector{folder / "spans"});
  files.split = "1";
  SentenceSpansOptions options{
      .choice = {.context = 42, .vocabulary = 100, .written = 13}, .start = 40, .end = 41};
  const auto says = [&](const Vocabulary& vocabulary) {
    return message_of([&] {
      const auto samples = sentence_spans(files, vocabulary, options);
      sample_batch(*samples, samples->size(), {{"source", 42}, {"ids", 13}, {"labels", 13}});
    });
  };
  const auto notice = [&](const Vocabulary& vocabulary) {
    return sentence_spans(files, vocabulary, options)->notice();
  };
  EXPECT_EQ(says(pieces_and_sentinels(40, 6)), "");
  EXPECT_EQ(notice(pieces_and_sentinels(40, 6)), "");
  EXPECT_NE(says(numbered_pieces(40)).find("<extra_id_0>, <extra_id_1> and so on, and the run's"),
            std::string::npos);
  EXPECT_NE(says(Vocabulary::ids(40)).find("and none is given"), std::string::npos);
  EXPECT_NE(notice(pieces_and_sentinels(40, 1)).find("than the tokenizer's 1 sentinels ends"),
            std::string::npos);
  const std::string few = says(pieces_and_sentinels(40, 1));
  EXPECT_NE(few.find("masked runs, but the vocabulary has 1 sentinels"), std::string::npos) << few;
  EXPECT_NE(few.find(text("of '", folder / "spans", "'")), std::string::npos) << few;
  options.choice.written = 12;
  EXPECT_NE(
      notice(pieces_and_sentinels(40, 6)).find("up to 13 to write; a sample above context 12"),
      std::string::npos);
  options.choice.written = 7;
  EXPECT_NE(says(pieces_and_sentinels(40, 6)).find("8 to write, but context is 7"),
            std::string::npos);
  options.choice.context = 8;
  EXPECT_NE(says(pieces_and_sentinels(40, 6)).find("source-context is 8, of which 6"),
            std::string::npos);
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
            }).find("have 4 sequences in 4 documents, but samples of sentences need one sequence"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              sentence_pairs(files, Vocabulary::ids(40), options);
            }).find("need the files' tokenizer, with [PAD], [CLS], [SEP] and [MASK], and none"),
            std::string::npos);
  EXPECT_EQ(
      message_of([&] { sentence_pairs(files, numbered_pieces(40), {.choice = {.context = 9}}); }),
      "context is 9, in which megatron-core masks no token; give at least 10");
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
