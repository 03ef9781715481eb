#include <algorithm>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/tensor/shard_copy.h"

namespace tessera {

namespace {

constexpr std::int64_t kAtATime = 1 << 22;  // elements of rows that are held

std::int64_t columns_of(const Shape& shape) {
  return shape.ndim() == 0 || shape[0] == 0 ? 1 : shape.numel() / shape[0];
}

/// Rows of a parameter, of which those that were read last stay.
class RowWindow {
 public:
  RowWindow(const PretrainedModel& model, std::string_view parameter)
      : model_(model),
        parameter_(parameter),
        shape_(model.parameters().find(parameter)->second),
        columns_(columns_of(shape_)),
        most_(std::max<std::int64_t>(1, kAtATime / std::max<std::int64_t>(1, columns_))) {}

  /// Elements from `first` on, as many as the rows at hand have of them, but at most `count`.
  std::span<const float> from(std::int64_t first, std::int64_t count) {
    const std::int64_t row = first / columns_;
    if (row < begin_ || row >= end_) load(row);
    const std::int64_t at = first - begin_ * columns_;
    return std::span(rows_).subspan(
        static_cast<std::size_t>(at),
        static_cast<std::size_t>(std::min(count, end_ * columns_ - first)));
  }

 private:
  void load(std::int64_t row) {
    begin_ = row, end_ = std::min(row + most_, shape_[0]);
    rows_.resize(static_cast<std::size_t>((end_ - begin_) * columns_));
    model_.read_rows(parameter_, begin_, end_ - begin_, rows_);
  }

  const PretrainedModel& model_;
  const std::string_view parameter_;
  const Shape shape_;
  const std::int64_t columns_, most_;
  std::int64_t begin_ = 0, end_ = 0;
  std::vector<float> rows_;
};

}  // namespace

void read_whole(const PretrainedModel& model, std::string_view parameter,
                std::span<std::byte> into) {
  const Shape& shape = model.parameters().find(parameter)->second;
  check(static_cast<std::int64_t>(into.size()) == 4 * shape.numel(), "bytes of ", parameter);
  model.read_rows(parameter, 0, shape[0],
                  {reinterpret_cast<float*>(into.data()), into.size() / sizeof(float)});
}

void read_shard(const PretrainedModel& model, std::string_view parameter, const Sharding& sharding,
                const Mesh& mesh, const Coordinates& at, std::span<std::byte> into) {
  std::ranges::fill(into, std::byte{0});
  RowWindow rows(model, parameter);
  const Shape& shape = model.parameters().find(parameter)->second;
  each_run(shape, sharding, mesh, at, [&](const ShardRun& run) {
    for (std::int64_t done = 0; done < run.count;) {
      const std::span<const float> some = rows.from(run.whole + done, run.count - done);
      std::memcpy(into.data() + sizeof(float) * static_cast<std::size_t>(run.shard + done),
                  some.data(), some.size_bytes());
      done += std::ssize(some);
    }
  });
}

}  // namespace tessera
