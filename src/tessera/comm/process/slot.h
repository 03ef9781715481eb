#pragma once
/// Messages under way.

#include <array>
#include <cstddef>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/comm/process/letter.h"
#include "tessera/comm/process/link.h"

namespace tessera::process {

/// Messages that are awaited together, and with which members of the group they are.
struct Slot {
  std::vector<Request> requests;
  std::vector<int> members;

  void reserve(std::size_t count) { requests.reserve(count), members.reserve(count); }
  void add(int member, Request request) {
    requests.push_back(request);
    members.push_back(member);
  }
  void clear() { requests.clear(), members.clear(); }
};

/// A send that may still be on its way.
struct Sent {
  Header header;
  std::array<Request, 2> requests;  // header, data
};

class ProcessCommunicator;

/// A receive from its start to its end.
struct Posted {
  enum State { Expected, Coming, There };  // no header yet; the data is on its way; all has come
  State state = There;
  ProcessCommunicator* owner = nullptr;
  const Collective* collective = nullptr;
  void* out = nullptr;
  Number number = 0;
  Request data;
};

/// A collective under way: what it was called with, and all letters of it.
struct Underway {
  ProcessCommunicator* owner = nullptr;  // null: none is
  const Collective* collective = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
  const std::int32_t* ids = nullptr;
  bool small = false;
  Letter mine;
  std::vector<Letter> letters;  // by member
  std::vector<char> arrived;    // by member
  Slot messages;                // theirs, then ours to them: these may outlast the call
  Underway* next = nullptr;     // that this rank started after it, on any group
};

/// What this rank has called on one group, however often it joined.
struct Calls {
  struct Mailbox {                   // messages to and from one member
    Number sends = 0, receives = 0;  // started
    Number received = 0;             // ended
    std::vector<Sent> sent;          // by number
    std::vector<Posted> posted;      // by number
  };
  Number started = 0, ended = 0;  // collectives
  Number dropped = 0;             // the first that this rank gave up, or 0
  std::array<Underway, Communicator::kInFlight> under_way;  // by number
  std::vector<Mailbox> with;                                // by member

  Underway& at(Number number) { return under_way[number % under_way.size()]; }
};

}  // namespace tessera::process
