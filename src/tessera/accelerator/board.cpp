#include "tessera/accelerator/board.h"

#include <charconv>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// A text is its size, a colon and its bytes.
std::string_view take_text(std::string_view& news) {
  std::size_t size = 0;
  const auto [end, problem] = std::from_chars(news.data(), news.data() + news.size(), size);
  const auto digits = static_cast<std::size_t>(end - news.data());
  if (problem != std::errc() || digits >= news.size() || news[digits] != ':' ||
      size > news.size() - digits - 1)
    fail(Fault::Peer,
         "what another process's plugin tells is damaged; do all processes run the "
         "same program?");
  const std::string_view out = news.substr(digits + 1, size);
  news.remove_prefix(digits + 1 + size);
  return out;
}

}  // namespace

pjrt::KeyValueStore Board::store() {
  pjrt::KeyValueStore out;
  out.get = [this](const std::string& key, std::chrono::milliseconds time) {
    return get(key, time);
  };
  out.put = [this](const std::string& key, const std::string& value) -> void {
    const std::string news = text(key.size(), ":", key, value.size(), ":", value);
    {
      const std::scoped_lock lock(mutex_);
      news_ += news;
    }
    add(news);
  };
  out.try_get = [this](const std::string& key) -> std::optional<std::string> {
    const std::scoped_lock lock(mutex_);
    const auto found = told_.find(key);
    return found == told_.end() ? std::nullopt : std::optional(found->second);
  };
  return out;
}

std::string Board::get(const std::string& key, std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return told_.contains(key) || !closed_.empty(); });
  const auto found = told_.find(key);
  if (found != told_.end()) return found->second;
  if (!closed_.empty()) fail(Fault::Peer, closed_);
  fail(Fault::Peer, "no process has published '", printable(key), "' within ", time.count(),
       " ms; look at the output of the others");
}

std::string Board::take_news() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(news_, {});
}

void Board::add(std::string_view news) {
  if (news.empty()) return;
  {
    const std::scoped_lock lock(mutex_);
    while (!news.empty()) {
      const std::string key(take_text(news));
      told_[key] = take_text(news);
    }
  }
  changed_.notify_all();
}

void Board::close(const std::string& why) {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = why;
  }
  changed_.notify_all();
}

}  // namespace tessera
