#include "tessera/user_code/read_ahead.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "tessera/tensor/host_tensor.h"

namespace tessera {

namespace {

class ReadAhead final : public Samples {
 public:
  ReadAhead(std::unique_ptr<Samples> samples, std::vector<TaskInput> inputs, std::int64_t most)
      : samples_(std::move(samples)), inputs_(std::move(inputs)), most_(most) {}

  ~ReadAhead() override {
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (reader_.joinable()) reader_.join();
  }

  std::int64_t size() const override { return samples_->size(); }
  std::int64_t bucket_length(std::int64_t first) const override {
    return samples_->bucket_length(first);
  }
  std::string notice() const override { return samples_->notice(); }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    std::unique_lock<std::mutex> hold(mutex_);
    changed_.wait(hold, [&] { return !wanted_; });  // what is being read is read to its end
    const bool here = read_ && first == first_ && count == count_;
    read_ = false;
    if (here) {
      if (const std::exception_ptr failure = std::exchange(failure_, nullptr))
        std::rethrow_exception(failure);
      for (std::size_t i = 0; i < inputs_.size(); ++i) copy(inputs_[i], tensors_[i], batch);
    } else {
      failure_ = nullptr;
      samples_->fill(first, count, batch);
    }
    if (first + count >= most_) return;
    first_ = first + count, count_ = count;
    wanted_ = true;
    if (!reader_.joinable()) reader_ = std::thread([this] { read_what_is_wanted(); });
    changed_.notify_all();
  }

 private:
  static void copy(const TaskInput& input, const HostTensor& from, BatchInputs& batch) {
    if (input.dtype == DType::I32) {
      batch.set(input.name, std::span(from.data<std::int32_t>(), numbers_in(from)));
    } else {
      batch.set(input.name, std::span(from.data<float>(), numbers_in(from)));
    }
  }
  static std::size_t numbers_in(const HostTensor& tensor) {
    return static_cast<std::size_t>(tensor.numel());
  }

  void read_what_is_wanted() const {
    std::unique_lock<std::mutex> hold(mutex_);
    while (true) {
      changed_.wait(hold, [&] { return wanted_ || ends_; });
      if (ends_) return;
      hold.unlock();
      try {
        read();
      } catch (...) {
        failure_ = std::current_exception();
      }
      hold.lock();
      wanted_ = false, read_ = true;
      changed_.notify_all();
    }
  }

  void read() const {
    tensors_.clear();
    BatchInputs batch("read ahead");
    for (const TaskInput& input : inputs_) {
      Shape shape{count_};
      for (const std::int64_t size : input.sample) shape.push_back(size);
      const TensorType type{input.dtype, shape, {}};
      batch.add(input.name, type, tensors_.emplace_back(type).bytes().data());
    }
    batch.begin();
    samples_->fill(first_, count_, batch);
  }

  const std::unique_ptr<Samples> samples_;
  const std::vector<TaskInput> inputs_;
  const std::int64_t most_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable bool wanted_ = false;  // samples [first_, first_ + count_) are to be read, or being read
  mutable bool read_ = false;    // they were: into tensors_, or there is a failure
  mutable bool ends_ = false;
  mutable std::int64_t first_ = 0, count_ = 0;
  mutable std::vector<HostTensor> tensors_;  // of inputs_
  mutable std::exception_ptr failure_;
  mutable std::thread reader_;  // from the first fill on
};

}  // namespace

std::unique_ptr<Samples> read_ahead(std::unique_ptr<Samples> samples, std::vector<TaskInput> inputs,
                                    std::int64_t most) {
  return std::make_unique<ReadAhead>(std::move(samples), std::move(inputs), most);
}

}  // namespace tessera
