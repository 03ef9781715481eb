#pragma once
/// A key-value store as the callbacks that a plugin takes.

#include "tessera/pjrt/c/arguments.h"
#include "tessera/pjrt/client.h"

namespace tessera::pjrt::c {

/// `store` is to live as long as the client. Functions that are empty are not offered.
void connect(ClientCreate& create, KeyValueStore& store);

}  // namespace tessera::pjrt::c
