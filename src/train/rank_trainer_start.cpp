// How a rank's training begins: the run's folder, what it goes on from, data, model and engine.
#include <ATen/Context.h>
#include <torch/cuda.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <ctime>
#include <limits>

#include "base/files.h"
#include "base/torch_compat.h"
#include "comm/exchange.h"
#include "options/option_table.h"
#include "plan/wire_format.h"
#include "record/record_file.h"
#include "record/tensorboard.h"
#include "runlog/node_report.h"
#include "status/status_board.h"
#include "train/checkpoint_folder.h"
#include "train/head.h"
#include "train/output_files.h"
#include "train/rank_setup.h"
#include "train/rank_trainer.h"
#include "train/weights_file.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Whether a run with these options would have come to the plan that was saved with those.
bool have_same_plan(const json& then, const json& now) {
  TrainOptions values;
  std::vector<std::string> keys = {"ranks", "wire", "topk_ratio"};
  for (const TrainOption& option : strategy_option_table(values, "", true)) keys.push_back(option.key);
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return then.contains(key) && now.contains(key) && then.at(key) == now.at(key);
  });
}

}  // namespace

void RankTrainer::name_run_folder() {
  std::string name = options_.name;
  if (name.empty() && !choice_.folders.empty()) run_folder_ = run_of(choice_.folders[0]);
  if (!run_folder_.empty()) return;
  if (name.empty()) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    char stamp[32];
    std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    name = fmt::format("{}-{}-{}", stamp, options_.model, options_.data.name);
  }
  run_folder_ = fs::path(options_.runs_folder) / name;
  for (int again = 2; options_.name.empty() && fs::exists(run_folder_); ++again)
    run_folder_ = fs::path(options_.runs_folder) / fmt::format("{}-{}", name, again);
}

void RankTrainer::lock_run_folder() {
  if (lock_) return;
  lock_ = std::make_unique<FolderLock>(run_folder_);
  if (!lock_->holder().empty())
    throw UsageError("the run {} is in use by {}: wait until it has ended, stop it, or choose another --name",
                     run_folder_.string(), lock_->holder());
  if (!lock_->problem().empty())
    console_.note(fmt::format("{} cannot be locked ({}): make sure that no other command trains there",
                              run_folder_.string(), lock_->problem()));
  remove_leftovers(run_folder_);
}

void RankTrainer::open_run_folder() {
  if (options_.name.empty() && !resumed_) {  // another run may have begun in the same second
    run_folder_.clear();
    name_run_folder();
  }
  make_folders(run_folder_, Readers::owner);
  lock_run_folder();
  if (!options_.name.empty() && !resumed_ && !options_.auto_resume && fs::exists(run_folder_ / kRecordsFile))
    throw UsageError("the run {} exists already: choose another --name, or continue it with --resume {}",
                     run_folder_.string(), options_.name);
  // What lies in the run's folder may lie in one of its own.
  for (const std::string& file : {options_.trace_file, options_.summary_file})
    if (lies_in(file, run_folder_)) make_folders(fs::path(file).parent_path(), Readers::owner);
  records_.add_sink(json_lines((run_folder_ / kRecordsFile).string()));
  if (options_.tensorboard)
    records_.add_sink(tensorboard_events(run_folder_ / kTensorboardFolder, first_step_,
                                         [this](const std::string& problem) { console_.note(problem); }));
}

void RankTrainer::find_resumed() {
  // Rank 0 looks: what the others see of a folder on another machine may be a moment old.
  all_ranks_or_none(comm_, [this] {
    if (!is_first_) return;
    const fs::path named_run = fs::path(options_.runs_folder) / options_.name;
    // A run that is there is locked before anything is read, and what killed saves have left is put in order.
    const auto lock_if_there = [this] {
      name_run_folder();
      if (fs::is_directory(run_folder_)) lock_run_folder();
    };
    if (!options_.name.empty()) lock_if_there();
    if (options_.auto_resume) {
      if (!checkpoints_in(named_run).empty()) choice_ = find_checkpoints(named_run.string(), {});
    } else if (!options_.resume.empty()) {
      choice_ = find_checkpoints(options_.resume, options_.runs_folder);
    }
    if (!lock_) lock_if_there();
  });
  std::string found(1, choice_.is_one ? '1' : '*');
  for (const fs::path& folder : choice_.folders) found += folder.string() + '\0';
  found = broadcast_text(comm_, found);
  choice_ = {{}, found[0] == '1'};
  for (std::size_t begin = 1, end = 0; begin < found.size(); begin = end + 1) {
    end = found.find('\0', begin);
    choice_.folders.emplace_back(found.substr(begin, end - begin));
  }
  // All ranks look at the same one, and go on to the next together.
  for (std::size_t i = 0; i < choice_.folders.size() && !resumed_; ++i) {
    std::string problem;
    try {
      resumed_ = std::make_unique<Checkpoint>(choice_.folders[i], comm_.rank());
    } catch (const std::exception& error) {
      problem = error.what();
    }
    const std::vector<std::string> problems = gather_texts(comm_, problem);
    const auto first = std::find_if(problems.begin(), problems.end(), [](const std::string& p) { return !p.empty(); });
    if (first == problems.end()) return;
    resumed_.reset();
    if (i + 1 == choice_.folders.size()) {
      finish_together(comm_);
      if (first - problems.begin() != comm_.rank()) throw Stopped("rank {} could not start", first - problems.begin());
      throw Error(problem);
    }
    console_.note(first->substr(0, first->find('\n')));
    console_.note(fmt::format("going on from the one before it, {}", choice_.folders[i + 1].string()));
  }
}

void RankTrainer::set_up() {
  if (is_first_) {
    require_writable("--trace", options_.trace_file, run_folder_);
    require_writable("--summary", options_.summary_file, run_folder_);
  }
  device_ = choose_device(options_.device, env_.local_rank);
  stream_ = std::make_unique<ComputeStream>(device_);
  if (options_.precision != "fp32" && !device_.is_cuda())
    throw UsageError("--precision {} needs --device cuda: on a CPU train in fp32", options_.precision);
  allow_tf32(options_.precision != "fp32");
  if (options_.deterministic) {
    // cuBLAS adds in one order only with workspaces of its own; torch insists on it.
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  } else if (options_.kernel_search > 0) {
    at::globalContext().setBenchmarkCuDNN(true);
    at::globalContext().setBenchmarkLimitCuDNN(options_.kernel_search);
  }
  DataOptions data = options_.data;
  if (!data.traits) data.traits = natural_data(options_.model);  // what `synthetic` imitates
  data_ = open_data(data);

  torch::manual_seed(options_.seed);
  ModelOptions model_options = options_.model_options;
  model_options.data = data_.train->traits();
  model_options.data_name = options_.data.name;
  model_ = make_model(options_.model, model_options);
  if (resumed_) {
    resumed_->load_weights(*model_);
    progress_ = resumed_->progress();
  } else if (!options_.weights_file.empty()) {
    const fs::path file = find_weights(options_.weights_file, options_.runs_folder);
    for (const std::string& line : weights_lines(load_weights(file, *model_, options_.strict_weights)))
      console_.result(line);
  }
  model_->to(device_);
  // Without tensor cores, that is in full float32, channels-last convolutions are slower.
  place_ = {device_, device_.is_cuda() && options_.precision != "fp32" && model_->prefers_channels_last()};
  if (place_.channels_last) use_channels_last(*model_);
  frozen_ = FrozenParameters(*model_, options_.freeze);
  if (!frozen_.summary().empty()) console_.line(frozen_.summary());
  frozen_.enter_training(*model_);
  if (options_.head_learning_rate > 0) (void)tensors_with_head(*model_);  // refuses here, on all ranks together
  if (!options_.keep_best.empty() || options_.patience > 0)
    best_ = BestTest(options_.keep_best, model_options.data.kind);
  keep_data_on_device();
  last_test_ = nothing_counted(model_options.data.kind);

  sampler_ =
      std::make_unique<Sampler>(data_.train->size(), options_.seed, options_.batch * options_.accumulate, comm_.size());
  sampler_->begin_epoch(progress_.epoch, progress_.samples_in_epoch);  // throws where that much is not there
  const int64_t step_samples = options_.batch * options_.accumulate * comm_.size();
  sizes_ = {data_.train->size(), step_samples, resumed_ ? resumed_->first_step_samples() : step_samples};
  course_ = std::make_unique<Course>(sizes_, options_.epochs, options_.steps);
  first_step_ = progress_.step;

  config_ = config_record(describe_options(options_), comm_.size(), device_.str());
  if (!model_options.data.class_names.empty()) config_["class_names"] = model_options.data.class_names;
  if (is_first_) open_run_folder();
}

void RankTrainer::start() {
  find_resumed();
  all_ranks_or_none(comm_, [this] { set_up(); });
  StatusBoard::get().set_run(broadcast_text(comm_, is_first_ ? fs::absolute(run_folder_).string() : ""));
  if (device_.is_cuda()) device_guard_.reset_device(device_);
  TuneOptions engine_options = tutti::engine_options(options_);
  engine_options.servers = servers_;
  engine_options.auto_options.steps = course_->steps_left(progress_) / 2;  // half of the run is to be the best plan's
  // Compression depends on how gradients are cut into messages: a run that is resumed early cuts as it would have.
  const bool is_compressing = is_compressed(options_.wire) && comm_.size() > 1;
  if (is_compressing && resumed_)
    engine_options.profile_steps = std::max<int>(1, engine_options.profile_steps - static_cast<int>(first_step_));
  if (options_.trace_steps > 0) {
    // From shortly after the plan is decided on, which follow_plan() sees.
    trace_ = std::make_unique<Trace>(TraceWindow{std::numeric_limits<int64_t>::max() / 2, options_.trace_steps});
    engine_options.trace = trace_.get();
  }
  const bool has_head = options_.head_learning_rate > 0;
  engine_ =
      std::make_unique<TunedEngine>(has_head ? tensors_with_head(*model_) : tensors_of(*model_), comm_, engine_options);
  all_ranks_or_none(comm_, [this] {
    if (resumed_) resumed_->restore(engine_->engine());
  });
  captured_ = std::make_unique<CapturedStep>(engine_->engine(), options_.graph);
  loss_sum_ = torch::zeros({}, device_);

  nodes_ = find_nodes(comm_);
  records_.add(RunRecord{config_, describe_nodes(nodes_), this_environment(TORCH_VERSION), env_.launcher, first_step_});
  console_.line(fmt::format("Training {} ({:.2f} M parameters) on {} ({} training samples, {} test samples)",
                            options_.model, static_cast<double>(engine_->engine().parameter_elements()) * 1e-6,
                            options_.data.name, data_.train->size(), data_.test->size()));
  console_.line(fmt::format("{} rank{} × batch {}{}, {} on {}, {} thread{} each; strategy {} over {}; {} steps; run {}",
                            comm_.size(), comm_.size() == 1 ? "" : "s", options_.batch,
                            options_.accumulate > 1 ? fmt::format(" × {}", options_.accumulate) : "",
                            options_.optimizer.name, device_.str(), options_.threads, options_.threads == 1 ? "" : "s",
                            options_.strategy, comm_.name(), progress_.step + course_->steps_left(progress_),
                            run_folder_.string()));
  if (nodes_.size() > 1) console_.line(list_nodes(nodes_));
  if (resumed_) go_on_from_resumed(is_compressing);
  resumed_.reset();
}

void RankTrainer::go_on_from_resumed(bool is_compressing) {
  const json& then = resumed_->options();
  latest_checkpoint_ = resumed_->folder();
  saved_step_ = first_step_;
  best_.restore(resumed_->best_test());
  if (is_first_ && !options_.keep_best.empty()) tell_other_best();
  console_.line(fmt::format("Resumed at step {} from {}", first_step_, latest_checkpoint_.string()));
  for (const auto& [key, value] : config_.items())
    if (then.contains(key) && then.at(key) != value)
      console_.note(
          fmt::format("{} was {} when the checkpoint was made and is {} now", key, then.at(key).dump(), value.dump()));
  if (sizes_.step != sizes_.first_step)
    console_.note(
        fmt::format("a step has {} samples now, and had {} when the run began: --steps, --warmup and the "
                    "schedule stay counted in those",
                    sizes_.step, sizes_.first_step));
  if (is_out_of_patience())
    console_.note(fmt::format("the run has come to its end, tests without a better one: {}. --patience makes it longer",
                              best_.tests_since()));
  else if (course_->steps_left(progress_) == 0)
    console_.note(fmt::format(
        "the run has come to its end, {}: --{} makes it longer",
        options_.steps > 0 ? fmt::format("{} steps", options_.steps) : fmt::format("{} epochs", options_.epochs),
        options_.steps > 0 ? "steps" : "epochs"));
  if (!resumed_->epoch_end().is_null()) open_epoch_ = resumed_->epoch_end().get<EpochRecord>();
  if (!is_compressing) return;
  const bool has_left_out = resumed_->has_left_out() && then.value("ranks", 0) == comm_.size();
  all_ranks_or_none(comm_, [&] {
    if (has_left_out) resumed_->restore_left_out(engine_->engine());
  });
  if (!has_left_out)
    console_.note("the checkpoint does not hold what these ranks left out of their messages: it is dropped");
  if (!resumed_->plan().is_null() && options_.strategy != kAutoStrategy && have_same_plan(then, config_))
    engine_->adopt(resumed_->plan().at("plan").get<Plan>(), resumed_->plan().at("profile").get<Profile>());
}

void RankTrainer::keep_data_on_device() {
  if (!device_.is_cuda()) return;
  const auto packed = pack_samples(data_.train, kMostResidentBytes, options_.workers);
  if (packed) resident_ = make_resident_data(*packed, place_);
}

}  // namespace tutti
