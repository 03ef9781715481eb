#include "tessera/token_files/index_sets.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/token_files/index_room.h"
#include "tessera/token_files/sentence_dataset.h"
#include "tessera/token_files/sentence_map.h"

namespace tessera {

namespace {

using OrderedJson = nlohmann::ordered_json;

/// Of a sample while a blend is made: its dataset and number, and a copy of both.
constexpr std::int64_t kBlendRowBytes = 2 * (2 + 8);

/// As Python's json.dumps(indent=4) writes it: a number that is not whole as the shortest text that
/// reads back, whole ones with .0, none in exponents between 1e-4 and 1e16.
void dump_python(const OrderedJson& value, int depth, std::string& out) {
  const std::string inner(static_cast<std::size_t>(4 * (depth + 1)), ' '),
      outer(static_cast<std::size_t>(4 * depth), ' ');
  if (value.is_number_float()) {
    char buffer[64];
    const double number = value.get<double>();
    const double size = std::abs(number);
    const auto form = size != 0 && (size < 1e-4 || size >= 1e16) ? std::chars_format::scientific
                                                                 : std::chars_format::fixed;
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, number, form);
    check(error == std::errc(), "the text of ", number);
    const std::string_view written(buffer, static_cast<std::size_t>(end - buffer));
    out += written;
    if (written.find_first_of(".e") == std::string_view::npos) out += ".0";
  } else if (value.is_structured() && !value.empty()) {
    out += value.is_array() ? "[\n" : "{\n";
    bool first = true;
    for (const auto& [key, item] : value.items()) {
      if (!first) out += ",\n";
      first = false;
      out += inner;
      if (value.is_object())
        out += OrderedJson(key).dump(-1, ' ', true, OrderedJson::error_handler_t::replace) + ": ";
      dump_python(item, depth + 1, out);
    }
    out += "\n" + outer + (value.is_array() ? "]" : "}");
  } else {
    out += value.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
  }
}

std::string python_text(const OrderedJson& value) {
  std::string out;
  dump_python(value, 0, out);
  return out;
}

/// What every dataset depends on.
OrderedJson described(const char* kind, const std::string& prefix, const GptDatasetChoice& choice) {
  OrderedJson out;
  out["class"] = kind;
  out["dataset_path"] = prefix;
  out["num_samples"] = choice.samples ? OrderedJson(*choice.samples) : OrderedJson();
  out["index_split"] = to_text(choice.part);
  out["random_seed"] = choice.seed;
  out["sequence_length"] = choice.context;
  out["split"] = choice.split.empty() ? OrderedJson() : OrderedJson(choice.split);
  out["split_matrix"] = OrderedJson();
  if (!choice.split.empty()) {
    OrderedJson matrix = OrderedJson::array();
    const SplitShares split = parse_split(choice.split);
    for (std::size_t i = 0; i < split.parts.size(); ++i) {
      const auto& share = split.parts[i];
      // megatron-core begins with the integer 0.
      if (!share)
        matrix.push_back(nullptr);
      else if (i == 0)
        matrix.push_back({0, share->second});
      else
        matrix.push_back({share->first, share->second});
    }
    out["split_matrix"] = matrix;
  }
  out["tokenizer"] = {
      {"class", "megatron.core.tokenizers.text.libraries.null_tokenizer.NullTokenizer"}};
  return out;
}

std::string index_folder(const char* kind, const std::string& prefix,
                         const GptDatasetChoice& choice) {
  return choice.cache.empty() ? text(prefix, "/cache/", kind, "_indices") : choice.cache;
}

}  // namespace

IndexSet gpt_index_set(const std::string& prefix, const GptDatasetChoice& choice) {
  constexpr const char* kKind = "GPTDataset";
  return {.folder = index_folder(kKind, prefix, choice),
          .ending = text(kKind, "-", to_text(choice.part)),
          .description = python_text(described(kKind, prefix, choice)),
          .arrays = {{"document_index.npy"}, {"sample_index.npy"}, {"shuffle_index.npy"}},
          .prefix = prefix};
}

IndexSet sentence_index_set(const std::string& prefix, const GptDatasetChoice& choice) {
  const SentenceKind& kind = sentence_kind(choice.written);
  OrderedJson out = described(kind.name, prefix, choice);
  out["masking_probability"] = kind.masking.probability;
  out["short_sequence_probability"] = SentenceMapRequest().short_probability;
  out["masking_max_ngram"] = kind.masking.longest;
  out["masking_do_full_word"] = kind.masking.whole_words;
  out["masking_do_permutation"] = false;
  out["masking_use_longer_ngrams"] = kind.masking.prefer_long;
  out["masking_use_geometric_distribution"] = kind.masking.geometric;
  if (choice.written > 0) {
    out["sequence_length_decoder"] = choice.written;
  } else {
    out["classification_head"] = true;
  }
  // megatron-core leaves the part out of the names of these files.
  return {.folder = index_folder(kind.name, prefix, choice),
          .ending = kind.name,
          .description = python_text(out),
          .arrays = {{"sample_index.npy"}},
          .prefix = prefix};
}

IndexSet blend_index_set(const BlendDescription& blend, const std::string& folder) {
  OrderedJson out, datasets = OrderedJson::array();
  for (const std::string& dataset : blend.datasets) datasets.push_back(OrderedJson::parse(dataset));
  out["class"] = "BlendedDataset";
  out["datasets"] = std::move(datasets);
  out["split"] = to_text(blend.part);
  out["weights"] = blend.weights.empty() ? OrderedJson(blend.sizes) : OrderedJson(blend.weights);
  out["size"] = blend.weights.empty() ? OrderedJson() : OrderedJson(blend.size);
  const std::vector<std::int64_t> shape = {blend.size};
  return {.folder = folder,
          .ending = text("BlendedDataset-", to_text(blend.part)),
          .description = python_text(out),
          .arrays = {{"dataset_index.npy", shape}, {"dataset_sample_index.npy", shape}},
          .prefix = ""};
}

BlendIndices kept_blend(const BlendDescription& blend, const std::string& folder,
                        std::vector<std::string>& notices) {
  const auto make = [&] {
    require_room_for_indices("of several token files", blend.size,
                             size_product({blend.size, kBlendRowBytes}, "bytes of indices"));
    BlendIndices made =
        blend.weights.empty() ? blend_all(blend.sizes) : blend_by_weight(blend.weights, blend.size);
    return std::vector<IntegerArray>{std::move(made.datasets), std::move(made.samples)};
  };
  std::vector<IntegerArray> kept =
      folder.empty() ? make() : kept_indices(blend_index_set(blend, folder), make, notices);
  return {std::move(kept[0]), std::move(kept[1])};
}

}  // namespace tessera
