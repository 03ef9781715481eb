#pragma once
/// How every connection between two ranks begins, before anything that is said on it counts:
///
///   who connects   its greeting, a challenge, and the address that it has dialled
///   who listens    a challenge of its own, and its proof of all that was said so far
///   who connects   its proof of the same
///   who listens    welcome, or why not
///
/// A proof needs the secret of the run, and is of the challenge that the other side has just drawn.
/// Who listens answers only to an address that it has: where a program at another address passes on
/// what both sides say, each would prove itself to the other, and the program could say the rest.
/// From the welcome on, words have keyed hashes (line.h).

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <type_traits>

#include "tessera/comm/process/tcp/line.h"
#include "tessera/comm/process/tcp/meeting_words.h"
#include "tessera/comm/process/tcp/secret.h"

namespace tessera::process {

/// The first that comes over a connection.
struct Opening {
  Greeting greeting;
  Challenge challenge;
  PlainEndpoint dialled = {};
};

/// The answer to it: the rest of a Word::Answer.
struct Response {
  Challenge challenge;
  Proof proof;
};

/// What both sides prove.
struct Said {
  Opening opening;
  Challenge answer;

  Proof proof_of_caller(const Secret& secret) const;
  Proof proof_of_listener(const Secret& secret) const;
  /// Of what is said from then on.
  Secret key(const Secret& secret) const;
};

static_assert(std::has_unique_object_representations_v<Said>, "no bytes between members");

/// How a rank that connects to another is received.
struct Reception {
  enum How {
    Welcome,
    Closed,   // before that; as where it was one of too many
    Refused,  // in words
    Unknown,  // the other side does not know the secret
    Broken    // by an errno; EPROTO: what is said is not what ranks say
  };
  How how = Broken;
  Line line;            // of Welcome
  bool proved = false;  // the other side is of this run: its words count
  int number = 0;       // of Broken
  Word word;            // of Refused, with the reason
  std::string reason;

  /// Somebody between the two has changed what the other side said.
  bool changed() const { return how == Broken && proved && number == EBADMSG; }
};

/// Connects in all but the name: `to` is a connection that the system has made. Waits until then.
Reception introduce(Socket to, const Greeting& greeting, const Secret& secret, Moment until);

}  // namespace tessera::process
