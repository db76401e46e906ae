#include "train/device_feed.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace tutti {

DeviceFeed::DeviceFeed(Loader& loader, const BatchPlace& place) : loader_(loader), place_(place) {
  if (!place.device.is_cuda()) return;
  copies_ = c10::impl::VirtualGuardImpl(place.device.type()).getStreamFromGlobalPool(place.device);
}

Batch DeviceFeed::next() {
  if (!ahead_) return to_device(loader_.next(), place_);
  Ahead ahead = std::move(*ahead_);
  ahead_.reset();
  const c10::Stream compute = c10::impl::VirtualGuardImpl(place_.device.type()).getStream(place_.device);
  ahead.arrived.block(compute);
  // Its memory was taken on the other stream, which must not have it back before this one is done with it.
  for (torch::Tensor& input : ahead.batch.inputs) input.record_stream(compute);
  ahead.batch.target.record_stream(compute);
  return std::move(ahead.batch);
}

void DeviceFeed::fetch_ahead() {
  if (!copies_ || ahead_ || !loader_.has_next()) return;
  const c10::StreamGuard guard(*copies_);
  ahead_.emplace(Ahead{to_device(loader_.next(), place_), c10::Event(place_.device.type())});
  ahead_->arrived.record(*copies_);
}

}  // namespace tutti
