#include "tessera/user_code/collated_dataset.h"

#include <algorithm>
#include <map>
#include <string>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/user_code/features.h"
#include "tessera/user_code/named_function.h"

namespace tessera {

namespace {

/// "Datasets::collate of samples 3, 0, 7"
std::string collate_of(std::span<const std::int64_t> numbers) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> some;
  for (const std::int64_t number : numbers.first(std::min(numbers.size(), kMost)))
    some.push_back(text(number));
  return text("Datasets::collate of ", numbers.size() == 1 ? "sample " : "samples ", join(some),
              numbers.size() > kMost ? ", ..." : "");
}

void require_collated(std::span<const std::int64_t> numbers, const std::vector<Features>& samples) {
  if (samples.size() != numbers.size())
    fail(Fault::Data, "it was given ", numbers.size(), " samples and returned ", samples.size(),
         "; return one for each");
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const std::string whose = text("sample ", numbers[k]);
    if (!same_kinds(samples[k], samples[0]))
      refuse_other_kinds(whose, samples[k], text("sample ", numbers[0]), samples[0],
                         RowLengths::Same, "Datasets::collate");
    for (const auto& [name, feature] : samples[k])
      if (count_of(feature) == 0)
        fail(Fault::Data, whose, ": feature '", name, "' is ", to_text(feature),
             "; give it numbers, or leave the sample out of the dataset");
  }
}

bool begins_with(const Feature& row, const Feature& beginning) {
  return std::visit(
      [&](const auto& all) {
        const auto* const first = std::get_if<std::remove_cvref_t<decltype(all)>>(&beginning);
        if (first == nullptr) return false;
        const auto a = numbers_of(all), b = numbers_of(*first);
        return b.size() <= a.size() && std::ranges::equal(a.first(b.size()), b);
      },
      row);
}

/// Adds an attention_mask where a sample has ids and no mask.
void add_mask(Features& sample) {
  const auto found = sample.find("input_ids");
  const auto* const ids =
      found == sample.end() ? nullptr : std::get_if<std::vector<std::int32_t>>(&found->second);
  if (ids == nullptr || sample.contains("mask")) return;
  const std::size_t size = ids->size();
  const auto [mask, is_new] =
      sample.try_emplace("attention_mask", std::vector<std::int32_t>(size, 1));
  if (!is_new && count_of(mask->second) != size)
    fail(Fault::Data, "a sample has ", size, " input_ids, and its attention_mask is ",
         to_text(mask->second), "; give as many");
}

}  // namespace

std::vector<Features> pad_to_longest(std::vector<Features> samples) {
  std::map<std::string, std::size_t, std::less<>> longest;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    add_mask(samples[k]);
    for (const auto& [name, feature] : samples[k]) {
      if (!is_row(feature)) continue;
      if (count_of(feature) == 0)
        fail(Fault::Data, "sample ", k, " of the ", samples.size(), " to pad: feature '", name,
             "' is ", to_text(feature),
             "; give it numbers, or leave the sample out of the dataset");
      std::size_t& most = longest[name];
      most = std::max(most, count_of(feature));
    }
  }
  for (Features& sample : samples) {
    for (auto& [name, feature] : sample) {
      const std::int32_t filler = is_label(name) ? kIgnoredLabel : 0;
      if (auto* const ids = std::get_if<std::vector<std::int32_t>>(&feature))
        ids->resize(longest.at(name), filler);
      if (auto* const row = std::get_if<std::vector<float>>(&feature))
        row->resize(longest.at(name), static_cast<float>(filler));
    }
  }
  return samples;
}

std::vector<CollatedSample> CollatedDataset::collated(std::span<const std::int64_t> numbers) const {
  if (numbers.empty()) return {};
  const std::vector<Features> samples = samples_of(*dataset_, numbers);
  std::vector<CollatedSample> out;
  run_named([&] { return collate_of(numbers); },
            [&] {
              std::vector<Features> made = collate_(samples);
              require_collated(numbers, made);
              for (std::size_t k = 0; k < made.size(); ++k) out.push_back({std::move(made[k]), {}});
            });
  for (std::size_t k = 0; k < out.size(); ++k)
    for (const auto& [name, feature] : samples[k])
      if (const auto its = out[k].features.find(name); its != out[k].features.end())
        if (is_row(feature) && begins_with(its->second, feature))
          out[k].sizes.emplace(name, count_of(feature));
  return out;
}

std::vector<Features> CollatedDataset::get_all(std::span<const std::int64_t> numbers) const {
  std::vector<Features> out;
  for (CollatedSample& sample : collated(numbers)) out.push_back(std::move(sample.features));
  return out;
}

std::string CollatedDataset::digest() const { return Datasets{dataset_, nullptr}.digest(); }

Datasets collated(Datasets data) {
  if (!data.collate) return data;
  for (std::shared_ptr<const MapDataset>* const dataset : {&data.train, &data.valid, &data.test})
    if (*dataset) *dataset = std::make_shared<CollatedDataset>(*dataset, data.collate);
  return data;
}

}  // namespace tessera
