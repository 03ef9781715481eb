#include "tessera/comm/mpi/under_way.h"

namespace tessera::mpi {

CallsUnderWay::CallsUnderWay(int ranks)
    : mail_(static_cast<std::size_t>(ranks)), next_mail_(mail_.size()) {
  for (std::vector<Header>& headers : mail_) headers.reserve(64);
}

Calls& CallsUnderWay::of_group(std::uint64_t group, int members) {
  Calls& out = groups_[group];
  const auto n = static_cast<std::size_t>(members);
  out.with.resize(n);
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

}  // namespace tessera::mpi
