#include "tessera/comm/local/waiting.h"

#include <chrono>
#include <exception>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/local/collectives.h"

namespace tessera::local {

void Waiting::turn(Patience& patience, int member, const Collective& c, Number number) const {
  if (world_.stopped()) fail_as_peer(c, number);
  Collectives::do_open_shares(world_, world_rank(index_));
  patience.wait();
  if (!patience.waits_long()) return;
  const int awaited = world_rank(member);
  const Place& theirs = world_.places[static_cast<std::size_t>(awaited)];
  if (patience.saw_end) {
    stop(text("waits ", here(c, number), " for rank ", awaited, ", which has ended (",
              theirs.view(), ")"));
  }
  patience.saw_end = theirs.ended();
  if (!patience.silent(world_.deadline, [&] { return world_.signs(); })) return;
  const auto seconds = std::chrono::duration<double>(world_.deadline).count();
  stop(text("has waited ", seconds, " s ", here(c, number), "; ", missing(c, number, member)));
}

/// "not arrived: rank 2 (in step 3 after ...); arrived: ranks 0, 1"
std::string Waiting::missing(const Collective& c, Number number, int late) const {
  const bool pair = c.kind == CollectiveKind::Send || c.kind == CollectiveKind::Recv;
  std::vector<backend::Awaited> members;
  for (int j = 0; j < shared_.group.size(); ++j) {
    if (pair && j != late && j != index_) continue;
    // One that has come and does not go on is late as well.
    const Member& theirs = shared_.members[static_cast<std::size_t>(j)];
    const bool arrived = j != late && (pair || j == index_ || theirs.has_arrived(number));
    const int at = world_rank(j);
    members.push_back({at, arrived, world_.places[static_cast<std::size_t>(at)].view()});
  }
  return backend::to_text(members);
}

void Waiting::stop(const std::string& why) const {
  const int me = world_rank(index_);
  world_.stop(me,
              std::make_exception_ptr(
                  Error(Fault::Peer, text("rank ", me, " of ", world_.size(), " ", why))),
              why);
}

void Waiting::fail_as_peer(const Collective& c, Number number) const {
  throw Error(Fault::Peer,
              text(world_.why(), "\n    rank ", world_rank(index_), " stopped ", here(c, number)));
}

std::string Waiting::here(const Collective& c, Number number) const {
  return backend::here(place().view().step, c, number, shared_.group);
}

}  // namespace tessera::local
