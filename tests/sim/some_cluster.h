#pragma once

#include "sim/cluster.h"

namespace tutti {

/// `nodes` nodes of `devices`, 10 GB/s inside and 1 GB/s between them, start-ups of 5 and 50 µs, software at no cost.
inline Cluster some_cluster(int nodes, int devices) {
  Cluster cluster;
  cluster.name = "some";
  cluster.groups = {{nodes, devices, Device{"device", 10e12, 500e9}}};
  cluster.inside.bytes_per_s = 10e9;
  cluster.inside.startup_s = 5e-6;
  cluster.network.bytes_per_s = 1e9;
  cluster.network.startup_s = 50e-6;
  cluster.collective = Collective::ring;
  return cluster;
}

}  // namespace tutti
