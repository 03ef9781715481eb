#include "tessera/train/step_bytes.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

namespace {

/// Names every member once, for both directions.
template <typename Record, typename Codec>
void each_member(Record& record, Codec& codec) {
  codec(record.step);
  codec(record.loss);
  codec(record.lr);
  codec(record.grad_norm);
  codec(record.ok);
  codec(record.seconds);
  codec(record.tokens_per_s);
  codec(record.place.epoch);
  codec(record.place.step);
  codec(record.loss_scale);
  codec(record.means);
  codec(record.tokens_per_expert);
  codec(record.tokens);
  codec(record.backend);
  codec(record.host_bytes);
}

class StepWriter {
 public:
  std::string take() { return std::move(bytes_); }

  template <typename T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(const std::string& text) {
    (*this)(text.size());
    bytes_ += text;
  }
  template <typename T>
  void operator()(const std::vector<T>& list) {
    (*this)(list.size());
    for (const T& each : list) (*this)(each);
  }
  void operator()(const NamedMeans& means) {
    (*this)(means.size());
    for (const auto& [name, value] : means) {
      (*this)(name);
      (*this)(value);
    }
  }

 private:
  std::string bytes_;
};

class StepReader {
 public:
  explicit StepReader(std::string_view bytes) : left_(bytes) {}
  bool done() const { return left_.empty(); }

  template <typename T>
  void operator()(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  void operator()(std::string& text) {
    std::size_t size = 0;
    (*this)(size);
    text = take(size);
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    std::size_t count = 0;
    for ((*this)(count); count > 0; --count) (*this)(list.emplace_back());
  }
  void operator()(NamedMeans& means) {
    std::size_t count = 0;
    for ((*this)(count); count > 0; --count) {
      auto& [name, value] = means.emplace_back();
      (*this)(name);
      (*this)(value);
    }
  }

 private:
  std::string_view take(std::size_t size) {
    check(size <= left_.size(), "a step's record has ", left_.size(), " bytes left, not ", size);
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(size);
    return out;
  }

  std::string_view left_;
};

}  // namespace

std::string to_bytes(const StepRecord& record) {
  StepWriter writer;
  each_member(record, writer);
  return writer.take();
}

StepRecord step_of_bytes(std::string_view bytes) {
  StepRecord out;
  StepReader reader(bytes);
  each_member(out, reader);
  check(reader.done(), "a step's record of ", bytes.size(), " bytes is too long");
  return out;
}

}  // namespace tessera
