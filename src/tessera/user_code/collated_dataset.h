#pragma once
/// A dataset whose samples a program collates.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/user_code/map_dataset.h"

namespace tessera {

/// `sizes`: of rows that a collate did no more than fill up, how many numbers they had.
struct CollatedSample {
  Features features;
  std::map<std::string, std::size_t, std::less<>> sizes = {};
};

/// Samples as `collate` returns them, of those that are asked for together. Errors of its own
/// functions name the functions of the dataset, and "Datasets::collate" with the samples.
class CollatedDataset final : public MapDataset {
 public:
  CollatedDataset(std::shared_ptr<const MapDataset> dataset, Collate collate)
      : dataset_(std::move(dataset)), collate_(std::move(collate)) {}
  std::int64_t size() const override { return size_of(*dataset_); }
  Features get(std::int64_t i) const override { return std::move(get_all({&i, 1}).front()); }
  std::vector<Features> get_all(std::span<const std::int64_t> numbers) const override;
  /// Errors: of `collate`; Fault::Data: it returns others than as many samples with the same
  /// features, of the same types, and with rows of one length, which are not empty.
  std::vector<CollatedSample> collated(std::span<const std::int64_t> numbers) const;
  bool in_order() const override { return dataset_->in_order(); }
  /// Of the samples as they are before: a collate may draw numbers.
  std::string digest() const override;

 private:
  std::shared_ptr<const MapDataset> dataset_;
  Collate collate_;
};

/// The same datasets, each collated if there is a collate.
Datasets collated(Datasets data);

}  // namespace tessera
