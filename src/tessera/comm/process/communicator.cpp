#include "tessera/comm/process/communicator.h"

#include <algorithm>
#include <chrono>

#include "tessera/base/error.h"

namespace tessera::process {

using namespace std::chrono_literals;

ProcessCommunicator::ProcessCommunicator(World& world, const Group& group, int index)
    : Communicator(group, index),
      world_(world),
      id_(id_of(group)),
      calls_(world.under_way().of_group(id_, group)),
      ins_(group.ranks.size()),
      taken_(group.ranks.size()),
      outgoing_(group.ranks.size()),
      incoming_(group.ranks.size()) {
  for (Slot& slot : slots_) slot.reserve(2 * group.ranks.size());
}

std::unique_ptr<Communicator> ProcessCommunicator::join(const Group& group) {
  const int index = group.index_of(world_.rank());
  check(index >= 0, "rank ", world_.rank(), " joins a group that it is not a member of: ", group);
  for (const int rank : group.ranks) {
    check(rank >= 0 && rank < world_.size(), "group ", group, " in a world of ", world_.size());
    check(std::count(group.ranks.begin(), group.ranks.end(), rank) == 1, "group ", group,
          " has a rank twice");
  }
  return std::make_unique<ProcessCommunicator>(world_, group, index);
}

bool ProcessCommunicator::peer_failed() {
  if (world_.on_other_thread()) return world_.stopped() || world_.any_dead();
  world_.look();
  return world_.stopped();
}

void ProcessCommunicator::alive() {
  check(!world_.on_other_thread(), "comm is called by another thread than the rank's own");
  world_.alive();
  move_messages();
}

// ---- Waiting, and failures.

void ProcessCommunicator::begin(const Collective& c, Number number) {
  world_.enter(c, group(), number);
  world_.alive();
  world_.look();
  move_messages();
  if (world_.stopped()) fail_as_peer(c, number);
}

void ProcessCommunicator::await_all(const Collective& c, Number number, std::span<Request> requests,
                                    std::span<const int> members) {
  for (std::size_t i = 0; i < requests.size(); ++i)
    await(c, number, members[i], [&] { return world_.link().done(requests[i]); });
}

void ProcessCommunicator::await_longer(Patience& patience, const Collective& c, Number number,
                                       int member) {
  world_.look();
  if (world_.stopped()) fail_as_peer(c, number);
  const int awaited = world_rank(member);
  if (world_.ended(awaited)) {
    // What it sent before it ended may come a moment later.
    if (!patience.saw_end) saw_end_ = Clock::now();
    patience.saw_end = true;
    if (Clock::now() - saw_end_ > 20ms) {
      stop(text("waits ", here(c, number), " for rank ", awaited, ", which has ended (",
                world_.seen(awaited), ")"));
      fail_as_peer(c, number);
    }
  }
  if (!patience.silent(world_.deadline(), [&] { return world_.signs(); })) return;
  const auto seconds = std::chrono::duration<double>(world_.deadline()).count();
  stop(text("has waited ", seconds, " s ", here(c, number), "; ", missing(c, number, member)));
  fail_as_peer(c, number);
}

std::string ProcessCommunicator::missing(const Collective& c, Number number, int late) {
  const bool pair = c.kind == CollectiveKind::Send || c.kind == CollectiveKind::Recv;
  if (!pair) note_arrivals(calls_.at(number));
  std::vector<backend::Awaited> members;
  for (int j = 0; j < size(); ++j) {
    if (pair && j != late && j != rank()) continue;
    // One that has come and does not go on is late as well.
    const auto i = static_cast<std::size_t>(j);
    const bool arrived = j != late && (pair || calls_.at(number).arrived[i]);
    members.push_back({world_rank(j), arrived, world_.seen(world_rank(j))});
  }
  return backend::to_text(members);
}

void ProcessCommunicator::quiesce(std::span<Request> requests,
                                  std::span<const int> members) noexcept {
  world_.quiesce(requests, members, group().ranks);
}

void ProcessCommunicator::fail_as_peer(const Collective& c, Number number) const {
  throw Error(Fault::Peer,
              text(world_.why(), "\n    rank ", world_.rank(), " stopped ", here(c, number)));
}

std::string ProcessCommunicator::here(const Collective& c, Number number) const {
  return backend::here(world_.step(), c, number, group());
}

}  // namespace tessera::process
