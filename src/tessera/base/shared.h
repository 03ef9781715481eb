#pragma once
/// A value that its copies share: a copy costs nothing, the value never changes.

#include <memory>
#include <utility>

namespace tessera {

/// Null where it was made from nothing. Equal where what it holds is equal.
template <typename T>
class Shared {
 public:
  Shared() = default;
  Shared(T value) : value_(std::make_shared<const T>(std::move(value))) {}

  explicit operator bool() const { return value_ != nullptr; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  friend bool operator==(const Shared& a, const Shared& b) {
    return a.value_ == b.value_ || (a && b && *a == *b);
  }

 private:
  std::shared_ptr<const T> value_;
};

}  // namespace tessera
