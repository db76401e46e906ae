#include "tutti/job.h"

#include "comm/connect.h"

namespace tutti {

Job Job::from_environment(const JobOptions& options) {
  const LaunchEnv env = read_launch_env();
  ConnectOptions how;
  how.transport = options.transport;
  how.device = options.device;
  how.timeout = options.timeout;
  return {env.local_rank, connect_ranks(how, env)};
}

}  // namespace tutti
