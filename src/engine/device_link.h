#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/flat_space.h"
#include "tutti/communicator.h"

namespace tutti {

enum class FlatBuffer { gradients, values };

/// How flat buffers get from the device that computes them to the communicator and back.
/// On the CPU both are the same memory and everything here is trivial; a GPU's slices are staged through pinned memory
/// on a stream of their own, unless the communicator takes device memory: then they stay where they are.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  // Called on the threads that compute:
  /// The work queued so far produces the gradient in `slot`. While a step is recorded: whenever it is repeated, up to
  /// here; the repetition has to be queued before wait_for_gradients() can mean it.
  virtual void gradient_queued(std::size_t slot) = 0;
  /// The work queued so far includes all of backward.
  virtual void backward_queued() = 0;
  /// Returns when the device has finished backward: from here on, waiting for transfers is exposed communication.
  virtual void wait_for_backward() = 0;
  /// Work queued from now on sees what the communication thread has delivered and updated.
  virtual void join() = 0;

  // Called on the communication thread:
  /// Device work of the calling thread goes to the link's own stream from now on.
  virtual void enter_comm_thread() = 0;
  /// Device work queued from now on starts after these slots' gradients are there; with `after_backward`, after the
  /// whole backward, since some of them may have got no gradient of their own.
  virtual void wait_for_gradients(SlotRange slots, bool after_backward) = 0;
  /// The elements in memory that the communicator takes.
  virtual Span fetch(FlatBuffer buffer, int64_t begin, int64_t end) = 0;
  /// The memory that fetch() would fill, as it is: what an earlier transfer left there.
  virtual Span host(FlatBuffer buffer, int64_t begin, int64_t end) = 0;
  /// Takes what the communicator made of them back to the device.
  virtual void deliver(FlatBuffer buffer, int64_t begin, int64_t end) = 0;
  /// What was queued so far is what join() waits for.
  virtual void record_delivered() = 0;

  /// Whether updates of parameters run on the host: any thread may make one at once, and it takes that thread's time.
  /// Otherwise they are queued behind the delivery, on the communication thread.
  virtual bool updates_on_host() const = 0;
};

/// For the device that the space lies on.
std::unique_ptr<DeviceLink> make_device_link(const FlatSpace& space, Communicator& comm);

std::unique_ptr<DeviceLink> make_cuda_link(const FlatSpace& space, Communicator& comm);  // in cuda_link.cpp

}  // namespace tutti
