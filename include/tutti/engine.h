#pragma once

#include <torch/types.h>
#include <tutti/communicator.h>
#include <tutti/optimizer.h>
#include <tutti/plan.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace tutti {

// The engine's parts, in src/engine.
class CapturedStep;
class DeviceLink;
class FlatSpace;
class ForwardWatch;
class GradientHooks;
class HostExecutor;
class IssueLog;
class OptimizerWatch;
class ParameterUpdate;
class PlanExecutor;
class PushPull;
class RepeatedTrace;
class StepObserver;
class StreamExecutor;
class Trace;
class TraceBuffer;
class Wire;
struct PlanNeeds;

/// A tensor and what messages and checkpoints call it.
struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
  int group = 0;  // of a parameter: 0 has EngineOptions::optimizer, 1 the first of EngineOptions::more_groups, …
};

/// What is trained. Parameters that require no gradient are left alone, tied ones count once.
struct TrainedTensors {
  std::vector<NamedTensor> parameters;  // float32, all on one device
  std::vector<NamedTensor> buffers;     // written by forward (batch-norm statistics); rank 0's are given to all
};

TrainedTensors tensors_of(const torch::nn::Module& module);

/// How an engine trains; the defaults are plain SGD over float32 messages.
struct EngineOptions {
  OptimizerOptions optimizer;
  /// Of the same optimizer, for parameters that are in groups of their own.
  std::vector<OptimizerOptions> more_groups;
  /// False: the caller updates the parameters, with an optimizer of its own. See Engine.
  bool updates_parameters = true;
  PushPull* servers = nullptr;  // for plans that use parameter servers; outlives the engine
  std::string wire = "fp32";    // the format in which gradients travel
  double topk_ratio = 0.01;     // of the gradients, that wire format topk keeps
  double clip_norm = 0;         // global norm that gradients are clipped to; 0: never
  Trace* trace = nullptr;       // records what both threads do; outlives the engine
  /// Called on the computing thread when a step begins to compute gradients, or ends without any: the communicator is
  /// free for a collective that every rank begins there.
  std::function<void()> step_opens;
};

/// What a step spent on communication.
struct StepTimes {
  double comm_busy_s = 0;     // transfers under way; of the step before, where transfers cross the end of a step
  double comm_exposed_s = 0;  // computation waited for them
};

/// Executes a Plan over named tensors, step after step, on one rank: gradients become ready, travel as the plan says,
/// and the optimizer applies the sums. Every rank ends each step with the same weights.
///
///   engine.begin_step();
///   engine.backward(loss, weight);    // again for each further micro-batch; not at all without samples
///   engine.finish_step(learning_rate);
///
/// Gradients are summed over ranks, so `weight` is what this micro-batch counts in the whole batch: its samples over
/// the samples of all ranks and micro-batches of the step. A parameter that gets no gradient on some rank counts as
/// zero there; one that has never got any on any rank is left alone, as torch::optim does.
///
/// Who updates what, and when: under Barrier::optimizer_step, finish_step() updates everything once all transfers are
/// done. Under Barrier::next_forward, a slice is updated when its last transfer is done and backward is over
/// (updates_parameters() says which transfer that is), and the next forward waits for each parameter it reads.
///
/// Two more ways of use, each alone or with the other:
///
/// Backward may be the caller's: `loss.backward()` instead of engine.backward(loss, weight). expect_backward() says
/// beforehand what the passes count. In a step one pass is the last: transfers start in it.
///
/// The update may be the caller's, too (EngineOptions::updates_parameters = false): finish_step() then waits for all
/// transfers and leaves the sums in the parameters' gradients; its learning rate is not used. begin_step() does not
/// forget gradients: the caller does. With passes of the caller's that each weigh 1 / ranks, gradients that are there
/// already, of a step before, stay what they are, and the new ones are added.
///
/// One calling thread. Borrows the tensors and the communicator.
class Engine {
 public:
  /// A collective: gives all ranks rank 0's values. Throws Error when their tensors differ. Begins with `bsp`'s plan.
  Engine(const TrainedTensors& tensors, Communicator& comm, const EngineOptions& options);
  Engine(const torch::nn::Module& module, Communicator& comm, const EngineOptions& options);
  ~Engine();

  void begin_step();
  void backward(const torch::Tensor& loss, double weight, bool is_last = true);
  StepTimes finish_step(double learning_rate);
  /// With a learning rate for each group.
  StepTimes finish_step(const std::vector<double>& learning_rates);

  /// From the next update on this group has these options. Before finish_step(); they may ask for no other state.
  void set_options(std::size_t group, const OptimizerOptions& options);
  /// Gradients are multiplied by `inverse_scale` before this step's update, and the step changes nothing where one of
  /// them is not finite. Before finish_step(), on every rank; throws UsageError where the plan updates before all
  /// gradients have come, which plans that are adopted from then on do not.
  void scale_gradients(double inverse_scale);
  /// Whether the last step was left out because of that. The same on all ranks.
  bool was_left_out() const { return was_left_out_; }

  /// Of the passes that the caller runs from now on: what they count (see `weight` above), and whether the next is its
  /// step's last. `when_done` is called at the end of each pass, in it.
  void expect_backward(double weight, bool is_last, std::function<void()> when_done = {});
  /// Forward begins only now: what the caller did since begin_step() or since the pass before was data. Optional, on
  /// the thread that computes.
  void begin_forward();
  /// A step that has begun to compute gradients, or waits for finish_step().
  bool is_step_open() const { return is_step_open_; }
  /// The last pass of the caller's in this step has begun: the communicator is the engine's until finish_step().
  bool is_last_backward_begun() const { return outer_.is_over || (outer_.is_open && is_last_micro_batch_); }
  /// A pass of the caller's that began and did not end: an error in it, or it is still under way.
  bool is_backward_broken() const { return outer_.is_open; }
  /// Steps of PyTorch's optimizers that were seen in Python; only while steps are profiled or traced.
  int64_t outer_updates() const { return outer_updates_; }

  /// Runs this plan from the next step on; the weights do not depend on which. A collective, between steps, with the
  /// same plan on all ranks. `profile` tells which parameters forward is seen to read: the others are waited for before
  /// forward begins. The plan is adapted to what the options need (see plan/adapt.h).
  void adopt(const Plan& plan, const Profile& profile = {});
  /// What adopt() would make of a plan now.
  Plan adapted(Plan plan) const;
  const Plan& plan() const { return plan_; }
  /// What a person should know about the plan ("" when nothing): an option that keeps the strategy from what it could
  /// do.
  const std::string& remark() const { return remark_; }

  /// Gives all ranks rank 0's buffers. A collective, while no transfer is under way.
  void share_buffers();
  /// Completes what is under way: afterwards, until the next backward, the communicator is free for others.
  void drain();
  /// Drains, gives all ranks rank 0's buffers and checks that ranks issued the same transfers. A collective, between
  /// steps: before evaluation, checkpoints and the end.
  void settle();

  int64_t steps_done() const { return steps_done_; }
  /// The norm of all gradients of the last step, summed over ranks and not clipped. None where they do not lie whole on
  /// this rank between steps: under plans whose transfers cross steps, and with a sharded optimizer. It reads all of
  /// them and waits for a GPU: call it now and then, not in every step.
  std::optional<double> gradient_norm() const;
  /// The parameters that are trained, in their own order.
  int64_t parameter_elements() const;
  /// Memory that the optimizer's state takes on this rank.
  int64_t optimizer_state_bytes() const;
  /// Optimizer state for a checkpoint: tensors by name, each a copy in its parameter's shape. A collective, after
  /// settle().
  std::vector<std::pair<std::string, torch::Tensor>> optimizer_state();
  /// When each parameter was first updated (0: never), in the parameters' order; the other half of the state.
  const std::vector<int64_t>& first_updates() const;
  /// Continues from a checkpoint. `find` returns a state tensor by name or throws.
  void restore(int64_t steps_done, std::vector<int64_t> first_updates,
               const std::function<torch::Tensor(const std::string&)>& find);
  /// What a compressing wire format (topk, sign) has left for later steps, for a checkpoint: on rank 0 a list for each
  /// rank, of tensors as optimizer_state() has them; elsewhere, and for other formats, nothing. A collective, after
  /// settle().
  std::vector<std::vector<std::pair<std::string, torch::Tensor>>> left_out();
  /// This rank's, from a checkpoint. `find` returns a tensor by its name or throws.
  void restore_left_out(const std::function<torch::Tensor(const std::string&)>& find);

  // For those who measure what it runs:
  const FlatSpace& space() const { return *space_; }
  /// Is told of every step's events from now on; null: nobody. Outlives its registration.
  void observe(StepObserver* observer);
  /// A CapturedStep is there, and has not given up.
  bool may_be_recorded() const { return may_be_recorded_; }
  /// Whether CapturedStep may record steps from now on; not while single ones are timed.
  void allow_recording(bool allowed) { is_recording_allowed_ = allowed; }

 private:
  // It repeats steps on a GPU without the calls above.
  friend class CapturedStep;
  /// Somebody wants to see the events of the next step as the host runs it, or to time it.
  bool is_next_step_watched() const;
  /// The next step is to be traced, and can be while the device repeats it.
  bool traces_repetition() const;
  void begin_traced_repetition();
  /// Records a step with `record(step)`, during which nothing of it runs; afterwards it counts as never begun. Where
  /// the host carries the transfers, what it has to do is left out.
  void record_step(const std::function<void()>& record);
  /// With `about`, those who watch steps.
  template <typename Function>
  void tell(Function about);
  /// A recorded step was queued on the device: does what is left of it for the host.
  StepTimes repeat_step(double learning_rate);
  /// From now on transfers are queued on the device's streams, where the communicator can; needed to record them.
  void queue_transfers();

  /// Rank 0's values, in one message.
  void broadcast(const std::vector<torch::Tensor>& tensors);
  void watch_optimizer();
  /// The passes that the caller runs.
  struct OuterBackward {
    double weight = 1;
    bool is_last = true;
    std::function<void()> when_done = {};
    bool is_open = false;           // under way
    bool is_over = false;           // the step's last one is through
    std::vector<char> seen = {};    // by parameter: the pass under way has brought its gradient
    std::vector<char> scaled = {};  // by parameter: its gradient has been multiplied by `weight`
  };
  void begin_outer_backward();
  void end_outer_backward();
  /// Puts the gradient that a pass of the caller's made into its place.
  void take_outer_gradient(std::size_t parameter, torch::Tensor& gradient);
  void complete_outer_gradients();
  void start_backward();
  void end_backward();
  void watch_forward();
  void wait_for_parameter(std::size_t parameter);
  void open_step();
  void on_gradient(std::size_t parameter);
  bool copies_at_the_end() const;
  bool leaves_gradients() const;
  void copy_gradients();
  bool crosses_steps() const { return executor_ != nullptr && plan_.barrier == Barrier::next_forward; }
  void carry_by_host();
  StepTimes complete_step();
  /// The step is being recorded, and its transfers are the host's.
  bool is_recorded_for_host() const { return is_recording_ && host_ != nullptr; }
  void announce_messages();
  PlanNeeds needs() const;
  TraceBuffer* recording() const;

  Communicator& comm_;
  const EngineOptions options_;
  const std::vector<NamedTensor> buffers_;
  std::unique_ptr<FlatSpace> space_;
  std::unique_ptr<ParameterUpdate> update_;
  std::unique_ptr<DeviceLink> link_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<IssueLog> log_;
  std::optional<double> inverse_scale_;  // of this step's gradients
  bool scales_gradients_ = false;        // some step has had one
  bool was_left_out_ = false;
  Plan plan_;
  std::string remark_;
  int plans_adopted_ = 0;
  std::unique_ptr<RepeatedTrace> repeated_trace_;  // of the step that was recorded last, if it is traced
  StepObserver* observer_ = nullptr;
  std::vector<char> written_;           // by parameter: this step has written its gradient
  std::vector<std::size_t> unwatched_;  // parameters that forward was never seen to read: waited for before it begins
  bool is_last_micro_batch_ = true;
  bool is_own_backward_ = false;  // backward() is under way
  OuterBackward outer_;
  bool is_step_open_ = false;
  int64_t steps_done_ = 0;
  double waited_s_ = 0;
  double busy_before_s_ = 0;       // transfers of the step before
  int64_t forward_begin_ns_ = 0;   // while recording
  int64_t backward_begin_ns_ = 0;  // the same
  int64_t idle_since_ns_ = 0;      // what the caller does since then is not known to be training
  int64_t outer_updates_ = 0;
  double outer_update_s_ = 0;  // of the caller's own optimizer, where somebody wants to know
  std::unique_ptr<OptimizerWatch> optimizer_watch_;
  std::unique_ptr<ForwardWatch> gate_;      // makes forward wait for parameters that are still under way; for traces
  std::unique_ptr<PlanExecutor> executor_;  // none with one rank
  HostExecutor* host_ = nullptr;            // executor_, if it is one
  StreamExecutor* streams_ = nullptr;       // or this
  bool is_recording_ = false;
  bool is_recording_allowed_ = true;
  bool may_be_recorded_ = false;
  std::vector<std::size_t> recorded_slots_;  // whose gradients a recorded step makes, in that order
  std::unique_ptr<GradientHooks> hooks_;     // last member: calls back into the others
};

}  // namespace tutti
