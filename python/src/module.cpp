// The C++ half of the Python module: what Python calls, with the GIL released while anything may wait.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>
#include <tutti/error.h>
#include <tutti/strategy.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "base/build_info.h"
#include "base/exit_note.h"
#include "comm/exchange.h"
#include "meeting.h"
#include "session.h"

namespace tutti::python {
namespace {

using Named = std::vector<std::pair<std::string, torch::Tensor>>;
using Release = py::call_guard<py::gil_scoped_release>;

std::vector<NamedTensor> named(const Named& tensors) {
  std::vector<NamedTensor> result;
  result.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) result.push_back({name, tensor});
  return result;
}

/// A dense tensor on the CPU as a Span; Python has made it one.
Span span_of(const torch::Tensor& tensor) {
  Span span{tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), DataType::f32};
  if (tensor.scalar_type() == torch::kInt64)
    span.type = DataType::i64;
  else if (tensor.scalar_type() == torch::kBFloat16)
    span.type = DataType::bf16;
  else if (tensor.scalar_type() == torch::kFloat16)
    span.type = DataType::f16;
  else if (tensor.scalar_type() != torch::kFloat32)
    throw UsageError("ranks cannot add up tensors of type {}", c10::toString(tensor.scalar_type()));
  return span;
}

std::unique_ptr<Job> join(const std::string& transport, int device, double timeout_s) {
  JobOptions options;
  options.transport = transport;
  options.device = device;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_s * 1e3));
  return std::make_unique<Job>(Job::from_environment(options));
}

/// Options of a group of parameters, by the names that records have.
OptimizerOptions group_options(const nlohmann::json& json) {
  OptimizerOptions options;
  options.name = json.at("name");
  for (const OptimizerOption& option : optimizer_options()) {
    std::string key = option.name;
    std::replace(key.begin(), key.end(), '-', '_');
    if (json.contains(key)) std::visit([&](auto field) { json.at(key).get_to(options.*field); }, option.field);
  }
  check_optimizer(options);
  return options;
}

/// Options of Python's by the names that records have: those of the strategy, of the optimizer, and of the run.
SessionOptions session_options(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  SessionOptions options;
  TuneOptions& tune = options.tune;
  tune.strategy = json.at("strategy");
  if (tune.strategy != kAutoStrategy) find_strategy(tune.strategy);  // throws for an unknown one
  for (const auto& [name, value] : json.at("strategy_options").items()) {
    bool is_known = false;
    for (const StrategyOption& option : strategy_options()) {
      if (option.key != name) continue;
      is_known = true;
      std::visit([&](auto field) { value.get_to(tune.strategy_options.*field); }, option.field);
    }
    if (!is_known) throw UsageError("there is no option '{}' of a strategy", name);
  }
  tune.updates_parameters = json.at("updates_parameters");
  tune.wire = json.at("wire");
  tune.clip_norm = json.at("clip_norm");
  const nlohmann::json& groups = json.at("groups");
  for (const nlohmann::json& group : groups) tune.more_groups.push_back(group_options(group));
  tune.optimizer = tune.more_groups.at(0);
  tune.more_groups.erase(tune.more_groups.begin());
  options.number = json.at("number");
  check_wire(tune);
  options.share_buffers = json.at("share_buffers");
  const nlohmann::json& run = json.at("run");
  options.run.name = run.at("name");
  options.run.runs_folder = run.at("folder");
  options.run.model = run.at("model");
  options.run.launcher = run.at("launcher");
  options.run.trace_steps = run.at("trace_steps");
  options.run.config = json.at("config");
  return options;
}

/// A sum that was begun, with the tensor that it is made in.
struct UnderWay {
  torch::Tensor tensor;
  std::unique_ptr<Work> work;
};

void define_job(py::module& module) {
  py::class_<UnderWay>(module, "UnderWay")
      .def(
          "wait", [](UnderWay& under_way) { under_way.work->wait(); }, Release());
  py::class_<Job>(module, "Job")
      .def(py::init(&join), py::arg("transport"), py::arg("device"), py::arg("timeout"), Release())
      .def_property_readonly("rank", &Job::rank)
      .def_property_readonly("size", &Job::size)
      .def_property_readonly("local_rank", &Job::local_rank)
      .def_property_readonly("launcher", &Job::launcher)
      .def_property_readonly("transport", [](Job& job) { return std::string(job.communicator().name()); })
      .def(
          "all_reduce",
          [](Job& job, const torch::Tensor& tensor) {
            return UnderWay{tensor, job.communicator().all_reduce_sum(span_of(tensor))};
          },
          Release(), py::keep_alive<0, 1>())
      .def(
          "broadcast",
          [](Job& job, const torch::Tensor& tensor, int root) {
            job.communicator().broadcast(span_of(tensor), root)->wait();
          },
          Release())
      .def(
          "gather_texts", [](Job& job, const std::string& text) { return gather_texts(job.communicator(), text); },
          Release())
      .def(
          "barrier", [](Job& job) { job.communicator().barrier()->wait(); }, Release())
      .def("finish", &Job::finish, Release())
      .def(
          "finish_together", [](Job& job) { finish_together(job.communicator()); }, Release())
      .def(
          "abort", [](Job& job, const std::string& reason) { job.communicator().abort(reason); }, Release());
}

void define_meeting(py::module& module) {
  py::class_<Meeting>(module, "Meeting")
      .def(py::init([](Job& job) { return std::make_unique<Meeting>(job.communicator()); }), py::keep_alive<1, 2>())
      .def("meet", [](Meeting& meeting, int64_t missed) {
        const Meeting::Answer answer = [&] {
          const py::gil_scoped_release release;
          return meeting.meet(missed);
        }();
        return py::make_tuple(answer.active, answer.session, answer.rates, answer.missed);
      });
}

void define_session(py::module& module) {
  py::class_<Session>(module, "Session")
      .def(py::init([](Job& job, Meeting& meeting, const Named& parameters, const std::vector<int>& groups,
                       const Named& buffers, const std::string& options) {
             const SessionOptions parsed = session_options(options);
             TrainedTensors tensors{named(parameters), named(buffers)};
             for (std::size_t i = 0; i < groups.size(); ++i) tensors.parameters.at(i).group = groups[i];
             const py::gil_scoped_release release;
             return std::make_unique<Session>(job, meeting, tensors, parsed);
           }),
           py::keep_alive<1, 2>(), py::keep_alive<1, 3>())
      .def("begin_forward", &Session::begin_forward, Release())
      .def("synchronize", &Session::synchronize)
      .def("set_passes", &Session::set_passes)
      .def("finish_step", &Session::finish_step, Release())
      .def("finish_scaled_step", &Session::finish_scaled_step, Release())
      .def("take_part", &Session::take_part, Release())
      .def("take_values", &Session::take_values, Release())
      .def(
          "set_options",
          [](Session& session, std::size_t group, const std::string& options) {
            session.set_options(group, group_options(nlohmann::json::parse(options)));
          },
          Release())
      .def("add_losses", &Session::add_losses)
      .def("drain", &Session::drain, Release())
      .def("settle", &Session::settle, Release())
      .def("finish", &Session::finish, Release())
      .def_property_readonly("steps", &Session::steps)
      .def_property_readonly("folder", &Session::folder)
      .def_property_readonly("outer_updates", [](Session& session) { return session.engine().outer_updates(); })
      .def_property_readonly("strategy", [](const Session& session) { return session.tuned().plan().strategy; })
      .def_property_readonly("plan", [](const Session& session) { return describe(session.tuned().plan()); })
      .def_property_readonly("remark", [](const Session& session) { return session.tuned().remark(); })
      .def_property_readonly("is_profiled", [](const Session& session) { return session.tuned().decisions() > 0; })
      .def_property_readonly("is_sharded",
                             [](const Session& session) { return session.tuned().plan().sharded_optimizer; })
      .def_property_readonly("optimizer_state_bytes",
                             [](Session& session) { return session.engine().optimizer_state_bytes(); })
      .def("first_updates", [](Session& session) { return session.engine().first_updates(); })
      .def(
          "optimizer_state",
          [](Session& session) {
            session.drain();
            return session.engine().optimizer_state();
          },
          Release())
      .def("restore", [](Session& session, int64_t steps, const std::vector<int64_t>& first_updates,
                         const std::map<std::string, torch::Tensor>& state) {
        session.drain();
        session.engine().restore(steps, first_updates, [&](const std::string& name) {
          const auto found = state.find(name);
          if (found == state.end()) throw Error("the optimizer's state lacks '{}'", name);
          return found->second;
        });
      });
}

}  // namespace
}  // namespace tutti::python

PYBIND11_MODULE(_tutti, module) {
  using namespace tutti;
  auto& error = py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  py::register_exception<UsageError>(module, "UsageError", error.ptr());
  py::register_exception<CommFailed>(module, "PeerFailed", error.ptr());
  tutti::python::define_job(module);
  tutti::python::define_meeting(module);
  tutti::python::define_session(module);
  module.def("has_peer_failed", &tutti::python::has_peer_failed);
  module.def("write_exit_note", &write_exit_note);
  module.def("strategies", [] {
    std::vector<std::string> names = strategy_names();
    names.emplace_back(kAutoStrategy);
    return names;
  });
  module.attr("__version__") = std::string(build_version());
}
