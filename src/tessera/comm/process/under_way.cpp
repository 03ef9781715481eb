#include "tessera/comm/process/under_way.h"

namespace tessera::process {

CallsUnderWay::CallsUnderWay(int ranks) : mail(static_cast<std::size_t>(ranks)) {
  constexpr std::size_t kMany = 64;  // more than are under way in most programs
  for (Mail& from : mail) from.unasked.reserve(kMany);
  posted.reserve(kMany), sent.reserve(kMany);
}

void CallsUnderWay::stop_listening(Link& link) noexcept {
  try {
    for (Mail& from : mail) {
      link.cancel(from.request);
      link.done(from.request);
    }
  } catch (...) {  // it has failed: it is no longer under way
  }
}

Calls& CallsUnderWay::of_group(std::uint64_t id, const Group& group) {
  const auto [found, fresh] = groups_.try_emplace(id);
  Calls& out = found->second;
  if (!fresh) return out;
  const auto n = static_cast<std::size_t>(group.size());
  out.with.resize(n);
  for (Calls::Mailbox& mailbox : out.with) {
    mailbox.sent.resize(static_cast<std::size_t>(group.messages));
    mailbox.posted.resize(static_cast<std::size_t>(group.messages));
  }
  for (Underway& call : out.under_way) {
    call.letters.resize(n), call.arrived.resize(n);
    call.messages.reserve(2 * n);
  }
  return out;
}

void CallsUnderWay::add(Underway& call) {
  Underway** at = &first_;
  while (*at != nullptr) at = &(*at)->next;
  *at = &call;
  call.next = nullptr;
}

void CallsUnderWay::remove(Underway& call) noexcept {
  Underway** at = &first_;
  while (*at != &call) at = &(*at)->next;
  *at = call.next;
  call.owner = nullptr;
}

std::byte* CallsUnderWay::staging(std::size_t bytes) {
  if (staging_.size() < bytes) staging_.resize(bytes);
  return staging_.data();
}

}  // namespace tessera::process
