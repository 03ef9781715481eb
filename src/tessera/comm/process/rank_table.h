#pragma once
/// MindSpore's rank table: which rank is on which server.

#include <string>
#include <string_view>
#include <vector>

namespace tessera::process {

struct RankTable {
  struct Rank {
    std::string server;  // an address or a name
    int device = 0;      // its number on the server
  };
  std::vector<Rank> ranks;  // by rank
  int servers = 0;
};

/// Reads {"server_list": [{"server_id", "host_nic_ip", "device": [{"device_id", "rank_id"}]}]};
/// numbers may be texts, as MindSpore writes them. A host_nic_ip that is an address is the
/// server's, else its server_id.
///
/// Errors:  Fault::Usage: no JSON, a field that is missing or of another kind, a rank that is there
///          twice or missing below the highest, another server_count. `path` is named.
RankTable parse_rank_table(std::string_view json, const std::string& path);

}  // namespace tessera::process
