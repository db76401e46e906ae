// What a rank does so that nothing is lost: it looks for signals, for numbers that are none, and saves.
#include <cmath>

#include "base/files.h"
#include "base/safetensors.h"
#include "plan/wire_format.h"
#include "status/status_board.h"
#include "train/failures.h"
#include "train/rank_setup.h"
#include "train/rank_trainer.h"
#include "train/same_weights.h"
#include "train/stop_signal.h"
#include "tutti/error.h"

namespace tutti {

namespace fs = std::filesystem;

std::string RankTrainer::where_to_go_on() const {
  if (saved_step_ < 0) return "No checkpoint was saved before.";
  return fmt::format("The checkpoint of step {} is good: --resume goes on from there.", saved_step_);
}

void RankTrainer::require_finite(double loss, int64_t step) const {
  if (std::isfinite(loss)) return;
  throw TrainingFailed(
      kExitNotFinite,
      "loss is not finite at step {} on rank {}: lower --lr ({:g} in this step), or clip gradients with "
      "--clip-norm 1. {}",
      step, comm_.rank(), learning_rate(), where_to_go_on());
}

double RankTrainer::finite_loss_sum() const {
  const double sum = loss_sum_.item<double>();
  require_finite(sum, progress_.step);
  return sum;
}

void RankTrainer::meet_if_due() {
  if (!saves_checkpoints() || !meeting_.is_due()) return;
  engine_->drain();
  // Rank 0's clock decides for all, and a signal to any rank.
  const double minutes = seconds_since(checkpoint_time_) / 60;
  const bool is_time = is_first_ && options_.checkpoint_minutes > 0 && minutes > options_.checkpoint_minutes;
  const std::vector<int64_t> reasons = meeting_.sum({is_time ? 1 : 0, stop_signal() != 0 ? 1 : 0});
  is_time_to_save_ = reasons[0] != 0;
  is_stopped_ = reasons[1] != 0;
}

bool RankTrainer::is_save_due() const {
  if (progress_.step == saved_step_) return is_stopped_;
  return is_time_to_save_ || is_stopped_ ||
         (options_.checkpoint_steps > 0 && progress_.step % options_.checkpoint_steps == 0);
}

void RankTrainer::save(const std::optional<EpochRecord>& open_epoch) {
  const TraceSpan span(recording(), TraceKind::checkpoint);
  const PhaseSpan phase(RunPhase::checkpoint);
  engine_->settle();
  finite_loss_sum();
  require_same_weights(*model_, comm_, fmt::format("after step {}", progress_.step), where_to_go_on());
  checkpoint_time_ = Clock::now();
  is_time_to_save_ = false;
  CheckpointContent content;
  content.optimizer_state = engine_->engine().optimizer_state();  // all ranks have a part in these two
  content.left_out = engine_->engine().left_out();
  content.progress = course_->settled(progress_);
  content.first_step_samples = sizes_.first_step;
  content.first_updates = engine_->engine().first_updates();
  content.options = config_;
  content.best_test = best_.state();
  if (open_epoch) content.epoch_end = *open_epoch;
  if (is_compressed(options_.wire) && engine_->profile() && engine_->decisions() > 0)
    content.plan = {{"plan", engine_->plan()}, {"profile", *engine_->profile()}};
  if (is_first_) content.weights = weights_of(*model_);
  console_.progress(fmt::format("saving a checkpoint at step {}", progress_.step));
  SavedCheckpoint saved;
  first_rank_alone(comm_, [&] {
    if (const std::string name = find_not_finite(*model_); !name.empty())
      throw TrainingFailed(
          kExitNotFinite,
          "the weights '{}' are not finite at step {}: lower --lr, or clip gradients with --clip-norm 1. {}", name,
          progress_.step, where_to_go_on());
    saved = save_checkpoint(run_folder_, content, latest_checkpoint_, options_.keep_checkpoints);
  });
  saved_step_ = progress_.step;
  StatusBoard::get().saved_checkpoint(saved_step_);
  if (!is_first_) return;
  latest_checkpoint_ = saved.folder;
  for (const fs::path& aside : saved.set_aside)
    console_.note(fmt::format("set aside as {}: this run has gone another way since", aside.string()));
  records_.add(CheckpointRecord{progress_.step, saved.folder.string(), seconds_since(checkpoint_time_)});
  if (is_stopped_)
    console_.result(fmt::format("Stopped by a signal after saving step {}; to go on: tutti train --resume {}",
                                progress_.step, run_folder_.string()));
}

void RankTrainer::follow_best() {
  if (options_.keep_best.empty() && options_.patience == 0) return;
  if (!best_.add(last_test_, progress_) || options_.keep_best.empty()) return;
  const NamedTensors weights = is_first_ ? weights_of(*model_) : NamedTensors();
  first_rank_alone(comm_, [&] {
    const fs::path folder = run_folder_ / kBestFolder;
    make_folders(folder, Readers::owner);
    save_weights(folder / kWeightsFile, weights,
                 {{"metric", best_.metric()},
                  {"value", fmt::format("{}", best_.value())},
                  {"step", std::to_string(best_.step())},
                  {"epoch", std::to_string(best_.epoch())}});
  });
}

void RankTrainer::tell_other_best() {
  const fs::path file = run_folder_ / kBestFolder / kWeightsFile;
  if (!fs::exists(file)) return;
  std::string step;
  try {
    const SafetensorsFile kept(file);
    const auto found = kept.metadata().find("step");
    if (found != kept.metadata().end()) step = found->second;
  } catch (const Error& error) {
    console_.note(fmt::format("{}: the next better test replaces it", error.what()));
    return;
  }
  if (step == std::to_string(best_.step())) return;
  console_.note(fmt::format("{} is of step {}, not of this run's best test so far: the next better one replaces it",
                            file.string(), step));
}

}  // namespace tutti
