#pragma once
/// The batch inputs of one run of a program, filled by the caller of the run.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/tensor/type.h"

namespace tessera {

/// The whole numbers that a program can take of an input: from 0 to values - 1, or `ignored`.
struct InputRange {
  std::int64_t values = 0;  // 0: all numbers
  std::optional<std::int64_t> ignored = std::nullopt;
  std::string what = {};  // "labels of a cross_entropy over 2 classes"
  friend bool operator==(const InputRange&, const InputRange&) = default;
};

/// Handed to the function that fills the inputs of a run; a program never runs on inputs of an
/// earlier one. Their memory is only theirs until the program has read them, so the spans must not
/// be kept.
class BatchInputs {
 public:
  explicit BatchInputs(std::string program) : program_(std::move(program)) {}
  void add(std::string name, const TensorType& type, std::byte* data, InputRange range = {});

  /// The memory of an input, row-major, to be written whole. Errors: no such input; elements of
  /// another type.
  template <typename T>
  std::span<T> fill(std::string_view name) {
    const std::span<std::byte> bytes = fill(name, dtype_of<T>());
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  /// The same, with every element set to `value` beforehand.
  template <typename T>
  std::span<T> fill_with(std::string_view name, T value) {
    const std::span<T> out = fill<T>(name);
    std::ranges::fill(out, value);
    return out;
  }
  std::span<std::byte> fill(std::string_view name, DType dtype);
  /// Copies all elements of an input. Errors: no such input; another type or number of elements.
  template <typename T>
  void set(std::string_view name, std::span<const T> values) {
    copy(name, dtype_of<T>(), std::as_bytes(values));
  }
  template <typename T>
  void set(std::string_view name, const std::vector<T>& values) {
    set(name, std::span<const T>(values));
  }

  // For the executor that runs the program:
  /// Forgets what was filled.
  void begin();
  /// Errors: an input that was not filled since begin(); Fault::Data: one that has a number outside
  /// its range.
  void require_filled() const;

 private:
  struct Input {
    std::string name;
    TensorType type;
    std::byte* data;
    InputRange range;
    bool filled;
  };
  void require_in_range(const Input& input) const;
  void copy(std::string_view name, DType dtype, std::span<const std::byte> values);
  std::string names() const;

  std::string program_;
  std::vector<Input> inputs_;
};

}  // namespace tessera
