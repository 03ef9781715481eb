#include "tessera/pretrained/pretrained_model.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/data/file.h"
#include "tessera/ir/strategy.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_labels.h"
#include "tessera/pretrained/hub/hub_rows.h"
#include "tessera/pretrained/hub/hub_weights.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

std::string without_prefix(const HubFamily& family, const std::string& name) {
  return name.starts_with(family.prefix) ? name.substr(family.prefix.size()) : name;
}

/// [out, in] of a tensor of ours: one of several dims is a matrix of the first and all others.
std::pair<std::int64_t, std::int64_t> rows_and_columns(const Shape& shape, bool transposed) {
  std::int64_t columns = 1;
  for (int d = 1; d < shape.ndim(); ++d) columns *= shape[d];
  const std::int64_t rows = shape.ndim() == 0 ? 1 : shape[0];
  return transposed ? std::pair(columns, rows) : std::pair(rows, columns);
}

/// The names, or the first of them.
std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i)
    shown.push_back(printable(names[i]));
  return names.size() > kMost ? text(join(shown), " and ", names.size() - kMost, " more")
                              : join(shown);
}

/// A tensor of the files, and which rows of a parameter it has.
struct Source {
  std::string name;
  HubRows rows;
  bool transposed;
};

}  // namespace

struct PretrainedModel::Parts {
  explicit Parts(std::string folder, const HubConfig& config);
  void find_parameters();
  void add_parameter(const std::string& name, const std::vector<HubTensor>& of);
  void check_zeros(const std::string& name) const;
  /// As it is called in the files; empty: they lack it.
  std::string find(const std::string& name) const;
  void read_transposed(const Source& source, std::int64_t columns, std::int64_t first,
                       std::int64_t count, std::span<float> out) const;

  std::string path, json;
  const HubFamily* family;
  ModelConfig config;
  HubWeights weights;
  std::vector<std::string> notices, labels;
  std::map<std::string, Shape, std::less<>> parameters;
  std::map<std::string, std::vector<Source>, std::less<>> sources;
};

bool PretrainedModel::is_at(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(path) / kHubConfigFile, ignored);
}

PretrainedModel PretrainedModel::open(const std::string& folder) {
  const std::string file = (fs::path(folder) / kHubConfigFile).string();
  return PretrainedModel(
      std::make_unique<const Parts>(folder, HubConfig(read_file(file, Fault::Data), file)));
}

PretrainedModel::PretrainedModel(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
PretrainedModel::~PretrainedModel() = default;
PretrainedModel::PretrainedModel(PretrainedModel&&) noexcept = default;
PretrainedModel& PretrainedModel::operator=(PretrainedModel&&) noexcept = default;

const std::string& PretrainedModel::path() const { return parts_->path; }
const ModelConfig& PretrainedModel::config() const { return parts_->config; }
const std::string& PretrainedModel::json() const { return parts_->json; }
const std::vector<std::string>& PretrainedModel::labels() const { return parts_->labels; }
const std::vector<std::string>& PretrainedModel::notices() const { return parts_->notices; }
const std::map<std::string, Shape, std::less<>>& PretrainedModel::parameters() const {
  return parts_->parameters;
}

PretrainedModel::Parts::Parts(std::string folder, const HubConfig& from)
    : path(std::move(folder)), json(from.json().dump(2)), family(&hub_family_of(from)) {
  if (from.has("quantization_config"))
    fail(Fault::Data, from.path(), ": quantization_config says that weights are quantized; read ",
         "here are f32, bf16 and f16: give the model from which this one was made");
  config = published(*family->family);
  config.task = task_in_hub(*family, from);
  family->read(from, config);
  const std::int64_t told =
      from.count("max_position_embeddings", from.count("n_positions", kMostContext));
  config.context = std::min(config.positions > 0 ? config.positions : told, kMostContext);
  if (reads_field(config, "classes")) {
    HubLabels told = read_labels(from);
    config.classes = told.count;
    labels = std::move(told.names);
  }
  complete(config);
  const FieldProblems wrong = problems(config);
  if (!wrong.empty()) fail(Fault::Data, from.path(), ": ", join(wrong.texts(), "; "));
  notices = from.notices();
  weights = HubWeights::open(path);
  if (weights.empty())
    notices.push_back(text("'", path, "' has no weights: all begin with random numbers"));
  find_parameters();
}

std::string PretrainedModel::Parts::find(const std::string& name) const {
  // Files of version 1 call weight and bias of norms gamma and beta.
  std::vector<std::string> names = {name};
  if (name.ends_with(".weight")) names.push_back(name.substr(0, name.size() - 6) + "gamma");
  if (name.ends_with(".bias")) names.push_back(name.substr(0, name.size() - 4) + "beta");
  for (const std::string& known : names) {
    if (weights.find(known) != nullptr) return known;
    const std::string bare = without_prefix(*family, known);
    if (weights.find(bare) != nullptr) return bare;
  }
  return "";
}

void PretrainedModel::Parts::find_parameters() {
  std::map<std::string, std::vector<HubTensor>> by_parameter;
  for (HubTensor& tensor : hub_tensors(*family, config, HubHeads::OfAllTasks))
    by_parameter[tensor.ours].push_back(std::move(tensor));
  for (const auto& [name, tensors] : by_parameter) add_parameter(name, tensors);
  std::set<std::string> used;
  for (const auto& [name, of] : sources) {
    for (const Source& source : of) used.insert(source.name);
  }
  for (const HubZeros& zeros : family->zeros) {
    const std::string found = find(std::string(zeros.name));
    if (found.empty()) continue;
    check_zeros(found);
    used.insert(found);
  }
  std::vector<std::string> unused;
  for (const std::string& name : weights.names()) {
    const std::string bare = without_prefix(*family, name);
    const bool unread = std::ranges::any_of(
        family->unread, [&](std::string_view pattern) { return matches(pattern, bare); });
    if (!used.contains(name) && !unread) unused.push_back(name);
  }
  if (!unused.empty())
    notices.push_back(
        text("tensors of '", path, "' that this model has no use for: ", some(unused)));
}

void PretrainedModel::Parts::check_zeros(const std::string& name) const {
  constexpr std::int64_t kAtATime = 1 << 20;
  const std::int64_t all = weights.find(name)->shape.numel();
  std::vector<float> values;
  for (std::int64_t first = 0; first < all; first += kAtATime) {
    values.resize(static_cast<std::size_t>(std::min(kAtATime, all - first)));
    weights.read(name, first, values);
    const auto other = std::ranges::find_if(values, [](float value) { return value != 0; });
    if (other != values.end())
      fail(Fault::Data, weights.file_of(name), ": tensor '", printable(name), "' has ", *other,
           " as element ", first + (other - values.begin()),
           "; it must be zeros, as nothing is added in its place here");
  }
}

void PretrainedModel::Parts::add_parameter(const std::string& name,
                                           const std::vector<HubTensor>& of) {
  std::vector<Source> found_sources;
  std::vector<std::string> lacking;
  for (const HubTensor& tensor : of) {
    const std::string found = find(tensor.theirs);
    if (found.empty()) {
      lacking.push_back(tensor.theirs);
      continue;
    }
    const bool transposed =
        tensor.order == HubOrder::InOut && weights.find(found)->shape.ndim() == 2;
    found_sources.push_back({found, tensor.rows, transposed});
  }
  if (found_sources.empty()) return;
  if (!lacking.empty())
    fail(Fault::Checkpoint, "'", path, "' has tensor '", found_sources[0].name, "' and lacks ",
         join(lacking), "; download it again");
  Shape shape = weights.find(found_sources[0].name)->shape;
  if (found_sources[0].transposed) shape = {shape[1], shape[0]};
  const auto [first_rows, columns] = rows_and_columns(shape, false);
  std::int64_t rows = 0;
  for (const Source& source : found_sources) {
    const Shape& theirs = weights.find(source.name)->shape;
    const auto [r, c] = rows_and_columns(theirs, source.transposed);
    const std::int64_t wanted = hub_row_count(source.rows, config, r);
    if (theirs.ndim() == 0 || r != wanted || c != columns)
      fail(Fault::Checkpoint, weights.file_of(source.name), ": tensor '", printable(source.name),
           "' is ", theirs, ", ", r, " x ", c, " as outputs x inputs; ", path, "/", kHubConfigFile,
           " makes it ", wanted, " x ", columns);
    rows += r;
  }
  shape[0] = rows;
  parameters.emplace(name, shape);
  sources.emplace(name, std::move(found_sources));
}

void PretrainedModel::read_rows(std::string_view parameter, std::int64_t first, std::int64_t count,
                                std::span<float> out) const {
  const auto found = parts_->sources.find(parameter);
  check(found != parts_->sources.end(), "no parameter ", parameter);
  const std::int64_t columns =
      rows_and_columns(parts_->parameters.find(parameter)->second, false).second;
  check(static_cast<std::int64_t>(out.size()) == count * columns, "rows of ", parameter);
  for (const Source& source : found->second) {
    if (source.transposed) {
      parts_->read_transposed(source, columns, first, count, out);
      continue;
    }
    const std::int64_t rows =
        rows_and_columns(parts_->weights.find(source.name)->shape, false).first;
    for (const HubRowRun& run : hub_row_runs(source.rows, parts_->config, rows)) {
      const std::int64_t begin = std::max(run.ours, first),
                         end = std::min(run.ours + run.count, first + count);
      if (begin >= end) continue;
      parts_->weights.read(source.name, (run.theirs + begin - run.ours) * columns,
                           out.subspan(static_cast<std::size_t>((begin - first) * columns),
                                       static_cast<std::size_t>((end - begin) * columns)));
    }
  }
}

/// Their rows are our columns: some whole rows at a time are read, and of them what is wanted is
/// put in place.
void PretrainedModel::Parts::read_transposed(const Source& source, std::int64_t columns,
                                             std::int64_t first, std::int64_t count,
                                             std::span<float> out) const {
  constexpr std::int64_t kAtATime = 1 << 22;  // elements
  const std::int64_t rows = weights.find(source.name)->shape[1];
  const std::int64_t lines = std::clamp<std::int64_t>(kAtATime / std::max<std::int64_t>(rows, 1), 1,
                                                      std::max<std::int64_t>(columns, 1));
  const std::vector<HubRowRun> runs = hub_row_runs(source.rows, config, rows);
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
