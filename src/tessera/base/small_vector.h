#pragma once
/// A list of few elements, stored inside the list object: a graph is many short lists.

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tessera {

/// As std::vector, of elements with a default; up to N need no memory of their own.
template <typename T, std::size_t N>
class SmallVector {
 public:
  using value_type = T;
  SmallVector() = default;
  SmallVector(std::initializer_list<T> items) : SmallVector(items.begin(), items.end()) {}
  template <typename Iterator>
  SmallVector(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  SmallVector(const SmallVector&) = default;
  SmallVector& operator=(const SmallVector&) = default;
  SmallVector(SmallVector&& other) noexcept
      : size_(std::exchange(other.size_, 0)),
        few_(std::move(other.few_)),
        many_(std::move(other.many_)) {}
  SmallVector& operator=(SmallVector&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    few_ = std::move(other.few_);
    many_ = std::move(other.many_);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return size_ <= N ? few_.data() : many_.data(); }
  const T* end() const { return begin() + size_; }
  T* begin() { return size_ <= N ? few_.data() : many_.data(); }
  T* end() { return begin() + size_; }
  const T& operator[](std::size_t i) const { return begin()[i]; }
  T& operator[](std::size_t i) { return begin()[i]; }
  T& back() { return begin()[size_ - 1]; }

  void push_back(T item) {
    if (size_ == N)
      many_.assign(std::make_move_iterator(few_.begin()), std::make_move_iterator(few_.end()));
    if (size_ < N) {
      few_[size_] = std::move(item);
    } else {
      many_.push_back(std::move(item));
    }
    ++size_;
  }
  void clear() { *this = {}; }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::size_t size_ = 0;
  std::array<T, N> few_{};
  std::vector<T> many_;  // all of them, once there are more than N
};

}  // namespace tessera
