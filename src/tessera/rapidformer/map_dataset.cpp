#include "tessera/rapidformer/map_dataset.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/data/permutation.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

/// The numbers of a feature, whether it is a row or one number.
std::span<const std::int32_t> numbers_of(const std::int32_t& one) { return {&one, 1}; }
std::span<const float> numbers_of(const float& one) { return {&one, 1}; }
template <typename T>
std::span<const T> numbers_of(const std::vector<T>& row) {
  return row;
}

template <typename T>
constexpr bool kIsRow = false;
template <typename T>
constexpr bool kIsRow<std::vector<T>> = true;

/// "a row of 64 i32", "an f32"
std::string to_text(const Feature& feature) {
  return std::visit(
      [](const auto& value) -> std::string {
        const auto numbers = numbers_of(value);
        using Number = std::remove_const_t<typename decltype(numbers)::element_type>;
        if constexpr (kIsRow<std::remove_cvref_t<decltype(value)>>)
          return text("a row of ", numbers.size(), " ", dtype_of<Number>());
        else
          return text("a number of ", dtype_of<Number>());
      },
      feature);
}

bool is_label(std::string_view name) { return name == "label" || name == "labels"; }

void hash_sample(StreamHash& hash, const Features& sample) {
  for (const auto& [name, feature] : sample) {
    hash.update(name);
    std::visit(
        [&](const auto& value) {
          const auto numbers = numbers_of(value);
          hash.update(numbers.data(), numbers.size_bytes());
        },
        feature);
  }
}

void hash_dataset(StreamHash& hash, const MapDataset& dataset) {
  constexpr std::int64_t kMost = 16;
  const std::int64_t size = dataset.size(), some = std::min(size, kMost);
  hash.update(text(size));
  for (std::int64_t i = 0; i < some; ++i)
    hash_sample(hash, dataset.get(some == 1 ? 0 : i * (size - 1) / (some - 1)));
}

class MapSamples final : public Samples {
 public:
  MapSamples(std::shared_ptr<const MapDataset> dataset, const MapSamplesOptions& options)
      : dataset_(std::move(dataset)),
        options_(options),
        key_(random_key(options.seed, "data.order")),
        first_(dataset_->get(0)) {
    size_ = dataset_->size();
    if (options_.most > 0) size_ = std::min(size_, options_.most);
  }

  std::int64_t size() const override { return size_; }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    std::vector<Drawn> samples;
    for (std::int64_t row = 0; row < count; ++row) samples.push_back(draw(first + row));
    for (const auto& [name, of_first] : first_) {
      std::visit([&](const auto& value) { fill_feature(name, value, samples, batch); }, of_first);
    }
  }

 private:
  struct Drawn {
    std::int64_t index = 0;  // in the dataset
    Features features = {};  // none: behind the end of what is held out
  };
  Drawn draw(std::int64_t number) const {
    if (options_.held_out && number >= size_) return {};
    const auto n = static_cast<std::uint64_t>(size_), k = static_cast<std::uint64_t>(number);
    const auto index =
        static_cast<std::int64_t>(options_.shuffled ? permute(k % n, n, key_, k / n) : k % n);
    return {index, dataset_->get(index)};
  }

  template <typename Value>
  void fill_feature(const std::string& name, const Value& of_first,
                    const std::vector<Drawn>& samples, BatchInputs& batch) const {
    const auto wanted = numbers_of(of_first);
    using Number = std::remove_const_t<typename decltype(wanted)::element_type>;
    const auto nothing = is_label(name) ? static_cast<Number>(kIgnoredLabel) : Number{0};
    auto to = batch.fill_with<Number>(name, nothing).begin();
    for (const Drawn& sample : samples) {
      if (!sample.features.empty()) {
        const auto found = sample.features.find(name);
        const Value* value =
            found == sample.features.end() ? nullptr : std::get_if<Value>(&found->second);
        if (value == nullptr || numbers_of(*value).size() != wanted.size() ||
            sample.features.size() != first_.size())
          refuse(name, sample.index, sample.features);
        std::ranges::copy(numbers_of(*value), to);
      }
      to += std::ssize(wanted);
    }
  }

  [[noreturn]] void refuse(const std::string& name, std::int64_t index,
                           const Features& sample) const {
    const auto found = sample.find(name);
    if (found == sample.end() || sample.size() != first_.size()) {
      std::vector<std::string> here, there;
      for (const auto& [its, value] : sample) here.push_back(its);
      for (const auto& [its, value] : first_) there.push_back(its);
      fail(Fault::Data, "sample ", index, " of the dataset has the features ", join(here),
           ", and the first one has ", join(there), "; get() must return the same for all");
    }
    fail(Fault::Data, "sample ", index, " of the dataset: feature '", name, "' is ",
         to_text(found->second), ", and that of the first one is ", to_text(first_.at(name)),
         "; pad or cut it in get()");
  }

  std::shared_ptr<const MapDataset> dataset_;
  MapSamplesOptions options_;
  std::uint64_t key_;
  Features first_;  // sample
  std::int64_t size_ = 0;
};

}  // namespace

std::string Datasets::digest() const {
  StreamHash hash;
  hash_dataset(hash, *train);
  if (valid) hash_dataset(hash, *valid);
  return hash.text();
}

std::vector<TaskInput> inputs_of(const MapDataset& dataset, const ModelConfig& model) {
  if (dataset.size() < 1)
    fail(Fault::Data, "a dataset of the program has no samples (size() is ", dataset.size(), ")");
  std::vector<TaskInput> out;
  for (const auto& [name, feature] : dataset.get(0)) {
    TaskInput input{name, DType::I32, {}, model.vocabulary, is_label(name)};
    std::visit(
        [&](const auto& value) {
          const auto numbers = numbers_of(value);
          input.dtype = dtype_of<std::remove_const_t<typename decltype(numbers)::element_type>>();
          if constexpr (kIsRow<std::remove_cvref_t<decltype(value)>>)
            input.sample = {std::ssize(numbers)};
          if (numbers.empty())
            fail(Fault::Data, "feature '", name, "' of the dataset's first sample is ",
                 to_text(feature), "; give it numbers, or leave it out");
        },
        feature);
    out.push_back(std::move(input));
  }
  return out;
}

std::unique_ptr<Samples> map_samples(std::shared_ptr<const MapDataset> dataset,
                                     const MapSamplesOptions& options) {
  return std::make_unique<MapSamples>(std::move(dataset), options);
}

}  // namespace tessera
