#include "tessera/pretrained/pretrained_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/models/family.h"
#include "tessera/pretrained/hub/hub_adapter.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_folder.h"
#include "tessera/pretrained/hub/hub_generation.h"
#include "tessera/pretrained/hub/hub_image_processor.h"
#include "tessera/pretrained/hub/hub_match.h"
#include "tessera/pretrained/hub/hub_rows.h"
#include "tessera/pretrained/hub/hub_sentences.h"
#include "tessera/pretrained/hub/hub_weights.h"
#include "tessera/pretrained/hub_cache.h"
#include "tessera/pretrained/merge_adapters.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// An adapter's folder has no config.json of a model.
bool is_adapter(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(path) / kHubAdapterConfig, ignored) &&
         !fs::exists(fs::path(path) / kHubConfigFile, ignored);
}

HubConfig adapter_config_of(const std::string& folder) {
  const std::string file = (fs::path(folder) / kHubAdapterConfig).string();
  return HubConfig(read_file(file, Fault::Data), file);
}

/// The folder of the model that an adapter is of.
std::string adapter_base(const std::string& folder) {
  const HubConfig config = adapter_config_of(folder);
  const std::string name = read_adapter_config(config).base;
  std::error_code ignored;
  const std::string beside = (fs::path(folder) / name).lexically_normal().string(),
                    cached = hub_snapshot(hub_root(), name);
  for (const std::string& base : {name, beside, cached})
    if (!base.empty() && fs::is_regular_file(fs::path(base) / kHubConfigFile, ignored)) return base;
  config.refuse(
      "base_model_name_or_path",
      "there is no such folder with a config.json, nor a model of that name in the cache; "
      "download it, or write its path there");
}

/// Elements of a row: of all dims but the first.
std::int64_t columns_of_rows(const Shape& shape) {
  std::int64_t out = 1;
  for (int d = 1; d < shape.ndim(); ++d) out *= shape[d];
  return out;
}

}  // namespace

struct PretrainedModel::Parts {
  Parts(std::string folder, std::string base, const HubConfig& from, const OpenPretrained& how);
  void read_transposed(const HubWeights& weights, const HubSource& source, const ModelConfig& stack,
                       std::int64_t columns, std::int64_t first, std::int64_t count,
                       std::span<float> out) const;

  std::string path, base;  // the folder of the model itself; another one where `path` is an adapter
  HubConfig from;
  const HubFamily* family;
  HubModel model;
  std::string json;
  std::vector<std::string> writing = {};  // notices_of_writing()
  HubWeights weights;
  HubMatch match;
  std::optional<HubAdapter> adapter;

  /// Of a parameter: the adapter's file, where it has it.
  const HubWeights& weights_of(std::string_view parameter) const {
    return adapter && adapter->match.sources.contains(parameter) ? adapter->weights : weights;
  }
  const std::vector<HubSource>& sources_of(std::string_view parameter) const {
    const HubMatch& from =
        adapter && adapter->match.sources.contains(parameter) ? adapter->match : match;
    const auto found = from.sources.find(parameter);
    check(found != from.sources.end(), "no parameter ", parameter);
    return found->second;
  }
};

bool PretrainedModel::is_at(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(path) / kHubConfigFile, ignored) || is_adapter(path);
}

void PretrainedModel::refuse_other(const std::string& path) {
  std::error_code ignored;
  if (!is_at(path) && fs::is_directory(path, ignored)) refuse_other_folder(path);
}

PretrainedModel PretrainedModel::open(const std::string& folder, const OpenPretrained& how) {
  const std::string base = is_adapter(folder) ? adapter_base(folder) : folder,
                    file = (fs::path(base) / kHubConfigFile).string();
  return PretrainedModel(std::make_unique<const Parts>(
      folder, base, HubConfig(read_file(file, Fault::Data), file), how));
}

PretrainedModel::PretrainedModel(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
PretrainedModel::~PretrainedModel() = default;
PretrainedModel::PretrainedModel(PretrainedModel&&) noexcept = default;
PretrainedModel& PretrainedModel::operator=(PretrainedModel&&) noexcept = default;

const std::string& PretrainedModel::path() const { return parts_->path; }
const std::string& PretrainedModel::base() const { return parts_->base; }
bool PretrainedModel::changes_base() const {
  return parts_->adapter && parts_->adapter->changes_base;
}
const ModelConfig& PretrainedModel::config() const { return parts_->model.config; }
const std::string& PretrainedModel::json() const { return parts_->json; }
const std::vector<std::string>& PretrainedModel::labels() const { return parts_->model.labels; }
std::string PretrainedModel::image_processor() const { return read_image_processor(base()); }
const std::vector<std::string>& PretrainedModel::notices() const { return parts_->model.notices; }
bool PretrainedModel::has_weights(const std::string& path) {
  return HubWeights::are_in(path) || is_adapter(path) || has_other_weights(path);
}

std::optional<std::int32_t> PretrainedModel::end_token() const {
  auto end = parts_->from.json().find("eos_token_id");
  if (end == parts_->from.json().end()) return {};
  if (end->is_array() && !end->empty()) end = end->begin();
  const bool known = end->is_number_unsigned() && *end < config().vocabulary;
  return known ? std::optional(end->get<std::int32_t>()) : std::nullopt;
}

std::optional<std::int32_t> PretrainedModel::end_padding() const {
  if (!parts_->family->ends_by_padding || !has_head(config(), TaskHead::SequenceClassification))
    return {};
  const auto pad = parts_->from.json().find("pad_token_id");
  if (pad == parts_->from.json().end() || !pad->is_number_unsigned()) return {};
  return static_cast<std::int32_t>(std::min<std::uint64_t>(pad->get<std::uint64_t>(), INT32_MAX));
}

const std::vector<std::string>& PretrainedModel::notices_of_writing() const {
  return parts_->writing;
}

std::string PretrainedModel::reads_last_token() const {
  if (!parts_->family->ends_by_padding || !has_head(config(), TaskHead::SequenceClassification))
    return "";
  const bool trained = std::ranges::any_of(
      parameters(), [](const auto& entry) { return entry.first.starts_with("score."); });
  if (!trained || end_padding()) return "";
  const HubJson* const pad = parts_->from.find("pad_token_id");
  return pad == nullptr ? "missing" : pad->dump();
}

std::vector<std::string> PretrainedModel::tasks() const { return hub_tasks(*parts_->family); }

std::vector<std::pair<std::string, std::int64_t>> PretrainedModel::stored() const {
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (const std::string& name : parts_->weights.names()) {
    const StoredTensor& tensor = *parts_->weights.find(name);
    out.emplace_back(tensor.other_dtype.empty() ? to_text(tensor.type.dtype) : tensor.other_dtype,
                     tensor.bytes());
  }
  return out;
}

const std::map<std::string, Shape, std::less<>>& PretrainedModel::parameters() const {
  return parts_->match.parameters;
}

PretrainedModel::Parts::Parts(std::string folder, std::string base_folder, const HubConfig& config,
                              const OpenPretrained& how)
    : path(std::move(folder)),
      base(std::move(base_folder)),
      from(config),
      family(&hub_family_of(from)),
      model(read_hub_model(*family, from, how.task_given ? TaskGiven::Yes : TaskGiven::No)),
      json(from.json().dump(2, ' ', false, HubJson::error_handler_t::replace)) {
  writing = tessera::notices_of_writing(from, base, model.config);
  if (how.of_sentences) read_sentence_modules(base, model.config, model.notices);
  using Weights = OpenPretrained::Weights;
  if (how.weights == Weights::None) return;
  if (how.weights == Weights::IfThere && !HubWeights::are_in(base)) return;
  weights = HubWeights::open(base);
  refuse_adapter_beside_model(base);
  match = match_tensors(*family, weights, from, base, how.or_else, model);
  if (path == base) return;
  adapter.emplace(path, read_adapter_config(adapter_config_of(path)), *family, model);
  for (const auto& [name, shape] : adapter->match.parameters) {
    match.parameters.insert_or_assign(name, shape);
    match.sources.erase(name);
  }
}

void PretrainedModel::check_shapes(const ModelConfig& model, std::string_view anew) const {
  const auto check = [&](const HubMatch& match, const HubWeights& weights) {
    tessera::check_shapes(match, *parts_->family, weights, parts_->from, model, anew);
  };
  check(parts_->match, parts_->weights);
  if (parts_->adapter) check(parts_->adapter->match, parts_->adapter->weights);
}

void PretrainedModel::read_rows(std::string_view parameter, std::int64_t first, std::int64_t count,
                                std::span<float> out) const {
  read_stored_rows(parameter, first, count, out);
  if (!parameter.ends_with(kLoraMagnitude)) return;
  const ParameterReader all = {[&](std::string_view name) {
                                 const auto found = parameters().find(name);
                                 return found == parameters().end() ? nullptr : &found->second;
                               },
                               [&](std::string_view name, std::span<float> values) {
                                 read_whole(*this, name, std::as_writable_bytes(values));
                               }};
  const std::vector<double> lengths = row_lengths(config(), all, parameter);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(static_cast<double>(out[i]) -
                                lengths[static_cast<std::size_t>(first) + i]);
}

namespace {

/// Experts from `first` on, each [out, in], out of a tensor that has all of them.
void read_experts_of(const HubWeights& weights, std::string_view name, const HubTurns& turns,
                     const Shape& size, std::int64_t first, std::span<float> out) {
  const std::int64_t ours = size.numel(), theirs = ours * turns.of;
  std::vector<float> one(static_cast<std::size_t>(theirs));
  for (std::int64_t e = 0; e * ours < std::ssize(out); ++e) {
    weights.read(name, (first + e) * theirs, one);
    for (std::int64_t i = 0; i < ours; ++i)
      out[static_cast<std::size_t>(e * ours + i)] =
          one[static_cast<std::size_t>(turns.place(i, size[0], size[1]))];
  }
}

}  // namespace

void PretrainedModel::read_stored_rows(std::string_view parameter, std::int64_t first,
                                       std::int64_t count, std::span<float> out) const {
  const HubWeights& weights = parts_->weights_of(parameter);
  const std::int64_t columns = columns_of_rows(parameters().find(parameter)->second);
  check(static_cast<std::int64_t>(out.size()) == count * columns, "rows of ", parameter);
  const ModelConfig stack = of_stack(config(), parameter);
  for (const HubSource& source : parts_->sources_of(parameter)) {
    if (const std::optional<HubTurns> turns = hub_turns(source.rows)) {
      const Shape& ours = parameters().find(parameter)->second;
      read_experts_of(weights, source.name, *turns, {ours[1], columns / ours[1]}, first, out);
      continue;
    }
    if (source.transposed) {
      parts_->read_transposed(weights, source, stack, columns, first, count, out);
      continue;
    }
    const std::int64_t rows = weights.find(source.name)->type.numel() / columns;
    for (const HubRowRun& run : hub_row_runs(source.rows, stack, rows, source.expert)) {
      const std::int64_t begin = std::max(run.ours, first),
                         end = std::min(run.ours + run.count, first + count);
      if (begin >= end) continue;
      weights.read(source.name, (run.theirs + begin - run.ours) * columns,
                   out.subspan(static_cast<std::size_t>((begin - first) * columns),
                               static_cast<std::size_t>((end - begin) * columns)));
    }
  }
}

/// Their rows are our columns: some whole rows at a time are read, and of them what is wanted is
/// put in place.
void PretrainedModel::Parts::read_transposed(const HubWeights& weights, const HubSource& source,
                                             const ModelConfig& stack, std::int64_t columns,
                                             std::int64_t first, std::int64_t count,
                                             std::span<float> out) const {
  constexpr std::int64_t kAtATime = 1 << 22;  // elements
  const std::int64_t rows = weights.find(source.name)->type.shape[1];
  const std::int64_t lines = std::clamp<std::int64_t>(kAtATime / std::max<std::int64_t>(rows, 1), 1,
                                                      std::max<std::int64_t>(columns, 1));
  const std::vector<HubRowRun> runs = hub_row_runs(source.rows, stack, rows, source.expert);
  std::vector<float> block(static_cast<std::size_t>(lines * rows));
  for (std::int64_t line = 0; line < columns; line += lines) {
    const std::int64_t some = std::min(lines, columns - line);
    weights.read(source.name, line * rows,
                 std::span(block).first(static_cast<std::size_t>(some * rows)));
    for (const HubRowRun& run : runs) {
      const std::int64_t begin = std::max(run.ours, first),
                         end = std::min(run.ours + run.count, first + count);
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t theirs = run.theirs + row - run.ours;
        for (std::int64_t k = 0; k < some; ++k)
          out[static_cast<std::size_t>((row - first) * columns + line + k)] =
              block[static_cast<std::size_t>(k * rows + theirs)];
      }
    }
  }
}

}  // namespace tessera
