#include "tessera/train/adapter_base.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/config/output_folder.h"
#include "tessera/config/recorded.h"
#include "tessera/models/parameter_shapes.h"
#include "tessera/pretrained/hub_cache.h"

namespace tessera {

namespace {

using Digests = std::map<std::string, std::string>;  // of parameters, by name

struct RecordedBase {
  std::string path, name;  // of a model of the Hub; empty: it is none
  Digests digests;
};

std::string to_json(const RecordedBase& base) {
  return nlohmann::json{{"path", base.path}, {"name", base.name}, {"digests", base.digests}}.dump();
}

RecordedBase parse_base(const Checkpoint& checkpoint, const std::string& said) {
  const auto json = nlohmann::json::parse(said, nullptr, false);
  try {
    return {json.at("path").get<std::string>(), json.at("name").get<std::string>(),
            json.at("digests").get<Digests>()};
  } catch (const nlohmann::json::exception& error) {
    fail(Fault::Checkpoint, "checkpoint '", checkpoint.path(), "' names its base in a way that ",
         "this version does not read (", error.what(), "); use the version that wrote it");
  }
}

std::string digest_of(const PretrainedModel& base, const std::string& parameter) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(base.parameters().find(parameter)->second.numel()) * sizeof(float));
  read_whole(base, parameter, bytes);
  return hash128_text(bytes);
}

/// That path and name, as the base of a checkpoint.
std::string base_text(const RecordedBase& base) {
  return base.name.empty() ? text("'", base.path, "'") : text(base.name, " in '", base.path, "'");
}

/// A snapshot that is no longer there may be so under its name, with the same weights.
std::string folder_of(const Checkpoint& checkpoint, const RecordedBase& base) {
  if (PretrainedModel::is_at(base.path)) return base.path;
  const std::string elsewhere = base.name.empty() ? "" : hub_snapshot(hub_root(), base.name);
  if (!elsewhere.empty()) return elsewhere;
  fail(Fault::Checkpoint, "checkpoint '", checkpoint.path(), "' holds an adapter alone, and its ",
       "base, ", base_text(base), ", is not there; put that model back, or a link to it, or go on ",
       "with training by --resume and --init-from FOLDER",
       base.name.empty() ? "" : text(", or download it: hf download ", base.name));
}

class FolderBase final : public BaseTensors {
 public:
  FolderBase(PretrainedModel model, const Digests& wanted) : model_(std::move(model)) {
    for (const auto& [name, digest] : wanted) {
      const auto found = model_.parameters().find(name);
      if (found != model_.parameters().end())
        entries_.push_back({name, {DType::F32, found->second, {}}, Role::Parameter});
    }
  }
  /// An adapter's own base may outlive the adapter's folder.
  const std::string& path() const override {
    return model_.changes_base() ? model_.path() : model_.base();
  }
  const std::vector<TensorEntry>& tensors() const override { return entries_; }
  void read(std::string_view name, std::span<std::byte> into) const override {
    read_whole(model_, name, into);
  }
  void read_shard(std::string_view name, const Sharding& sharding, const Mesh& mesh,
                  const Coordinates& at, std::span<std::byte> into) const override {
    tessera::read_shard(model_, name, sharding, mesh, at, into);
  }
  const PretrainedModel& model() const { return model_; }

 private:
  PretrainedModel model_;
  std::vector<TensorEntry> entries_;
};

/// What is wrong with the folder is told with whose base it is.
PretrainedModel open_base(const Checkpoint& checkpoint, const std::string& folder) {
  try {
    return PretrainedModel::open(folder, {.task_given = true});
  } catch (const Error& error) {
    throw error.with(text("it is the base of the adapter in checkpoint '", checkpoint.path(), "'"));
  }
}

/// Weights that were not those of the adapter would be used in silence.
void require_same_base(const Checkpoint& checkpoint, const RecordedBase& base,
                       const PretrainedModel& model) {
  std::vector<std::string> others;
  for (const auto& [name, digest] : base.digests) {
    if (!model.parameters().contains(name))
      fail(Fault::Checkpoint, "checkpoint '", checkpoint.path(), "' holds an adapter of ",
           base_text(base), ", and '", model.path(), "' has no parameter ", name,
           ", so another model is there now; put back the one that it was trained on");
    if (digest_of(model, name) != digest) others.push_back(name);
  }
  if (others.empty()) return;
  constexpr std::size_t kShown = 3;
  const std::size_t count = others.size();
  others.resize(std::min(count, kShown));
  fail(Fault::Checkpoint, "checkpoint '", checkpoint.path(), "' holds an adapter of ",
       base_text(base), ", but ", count, " of ", base.digests.size(), " parameters in '",
       model.path(), "' have other values than when it was trained (", join(others),
       count > kShown ? ", ..." : "", "): put back the model that it was trained on");
}

}  // namespace

LeftOut base_of_adapters(const RunConfig& config) {
  const bool is_read = !config.init_from.empty() && !config.init_from_config;
  if (config.model.lora.rank == 0 || !is_read) return {};
  return [kept = config.optimizer.trained](const State& state) {
    const auto is_of = [&](const std::string& pattern) { return matches(pattern, state.path); };
    return state.role == Role::Parameter && std::ranges::none_of(kept, is_of);
  };
}

bool leaves_base_out(const RunConfig& config) {
  return !config.save_base && base_of_adapters(config);
}

LeftOut left_out_of_saves(const RunConfig& config) {
  return leaves_base_out(config) ? base_of_adapters(config) : LeftOut();
}

std::string record_of_base(const RunConfig& config, const PretrainedModel& base) {
  const LeftOut left_out = left_out_of_saves(config);
  // An adapter's own base may outlive the adapter's folder.
  const std::string& folder = base.changes_base() ? base.path() : base.base();
  RecordedBase out{absolute_path(folder), hub_name(folder), {}};
  for (const auto& [name, shape] : parameter_shapes(config.model)) {
    State state;
    state.path = name;
    if (left_out(state)) out.digests.emplace(name, digest_of(base, name));
  }
  return to_json(out);
}

std::string record_of_base(const Checkpoint& from) {
  RecordedBase out = parse_base(from, from.record().texts.at(kRecordedBase));
  out.path = absolute_path(from.base_path());
  return to_json(out);
}

Checkpoint open_with_base(const std::string& path, const BaseOptions& options) {
  Checkpoint out = Checkpoint::open(path);
  const auto& texts = out.record().texts;
  const auto found = texts.find(kRecordedBase);
  if (found == texts.end()) return out;
  const RecordedBase recorded = parse_base(out, found->second);
  // A name of the Hub may by now be that of other weights than these.
  const bool updated = !recorded.name.empty() && hub_name(options.at) == recorded.name &&
                       PretrainedModel::is_at(recorded.path);
  const std::string folder =
      options.at.empty() || updated ? folder_of(out, recorded) : absolute_path(options.at);
  auto base = std::make_unique<FolderBase>(open_base(out, folder), recorded.digests);
  if (options.check) require_same_base(out, recorded, base->model());
  out.stand_on(std::move(base));
  return out;
}

}  // namespace tessera
