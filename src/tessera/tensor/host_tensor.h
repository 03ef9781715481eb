#pragma once
/// A tensor in host memory that owns its bytes: what tests, files and the interpreter hold.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/tensor/type.h"

namespace tessera {

class HostTensor {
 public:
  HostTensor() = default;
  /// Zero-filled, 64-byte aligned.
  explicit HostTensor(TensorType type);
  HostTensor(DType dtype, Shape shape) : HostTensor(TensorType{dtype, shape, {}}) {}

  template <typename T>
  static HostTensor of(Shape shape, const std::vector<T>& values) {
    HostTensor out(dtype_of<T>(), shape);
    check(static_cast<std::int64_t>(values.size()) == shape.numel(), "values for shape ", shape);
    T* data = out.data<T>();
    for (std::size_t i = 0; i < values.size(); ++i) data[i] = values[i];
    return out;
  }
  template <typename T>
  static HostTensor scalar(T value) {
    return of<T>({}, std::vector<T>{value});
  }

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  std::int64_t numel() const { return type_.numel(); }

  template <typename T>
  T* data() {
    check(dtype_of<T>() == type_.dtype, "a ", type_, " read as ", dtype_of<T>());
    return reinterpret_cast<T*>(bytes_.get());
  }
  template <typename T>
  const T* data() const {
    return const_cast<HostTensor*>(this)->data<T>();
  }
  std::span<std::byte> bytes() { return {bytes_.get(), static_cast<std::size_t>(type_.bytes())}; }
  std::span<const std::byte> bytes() const {
    return {bytes_.get(), static_cast<std::size_t>(type_.bytes())};
  }

  /// Element `i` in row-major order as a double, whatever the dtype.
  double at(std::int64_t i) const;
  void set(std::int64_t i, double value);
  /// The same numbers in another dtype.
  HostTensor cast(DType dtype) const;

 private:
  TensorType type_;
  std::shared_ptr<std::byte> bytes_;  // copies share; use clone() for a copy of one's own

 public:
  HostTensor clone() const;
};

}  // namespace tessera
