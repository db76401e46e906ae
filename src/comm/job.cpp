#include "tutti/job.h"

#include "comm/connect.h"
#include "comm/ps/servers.h"

namespace tutti {

Job Job::from_environment(const JobOptions& options) { return {options, read_launch_env()}; }

Job::Job(const JobOptions& options, const LaunchEnv& env)
    : options_(options), local_rank_(env.local_rank), name_(env.job), launcher_(env.launcher) {
  ConnectOptions how;
  how.transport = options.transport;
  how.device = options.device;
  how.timeout = options.timeout;
  comm_ = connect_ranks(how, env);
}

Job::Job(Job&& other) noexcept = default;
Job::~Job() = default;

PushPull& Job::parameter_servers() {
  if (!servers_) {
    ServersOptions how;
    how.job = name_;
    how.ranks = size();
    how.transport = comm_->name();
    how.timeout = options_.timeout;
    servers_ = std::make_unique<Servers>(how, rank());
  }
  return servers_->push_pull();
}

void Job::finish() {
  if (servers_) servers_->stop();
  servers_.reset();
  comm_->barrier()->wait();
}

}  // namespace tutti
