// AscendC's tensors, TPipe, TQue and TBuf, with the flags that queues set and wait for.
#ifndef PYPTO_TWIN_QUEUES_H
#define PYPTO_TWIN_QUEUES_H

#include <cstdint>

#include "vector_core.h"

namespace AscendC {

enum class TPosition : uint8_t { GM, VECIN, VECOUT, VECCALC };
using QuePosition = TPosition;

template <HardEvent event>
inline void SetFlag(int32_t id) {
    pypto_twin::vector_core().record(pypto_twin::Op::SET_FLAG, event, id);
}

template <HardEvent event>
inline void WaitFlag(int32_t id) {
    pypto_twin::vector_core().record(pypto_twin::Op::WAIT_FLAG, event, id);
}

template <class T>
class GlobalTensor {
  public:
    void SetGlobalBuffer(T* buffer, uint64_t elems) {
        start_ = buffer;
        elems_ = elems;
    }

    GlobalTensor operator[](uint64_t offset) const {
        pypto_twin::require(offset <= elems_, "element ", offset, " of a GlobalTensor of ", elems_);
        GlobalTensor rest;
        rest.SetGlobalBuffer(start_ + offset, elems_ - offset);
        return rest;
    }

    T* GetPhyAddr() const { return start_; }

  private:
    T* start_ = nullptr;
    uint64_t elems_ = 0;
};

// A buffer of UB, and where it is on its way through a queue.
struct Buffer {
    enum class State : uint8_t { FREE, OCCUPIED, QUEUED, DEQUEUED };

    uint32_t offset = 0;
    uint32_t size_bytes = 0;
    State state = State::FREE;
    bool is_free_flagged = false;
    // AscendC takes the lowest id that is free at the moment; here a buffer keeps one of its own,
    // its number among the buffers of the same position, so that a trace says which slot it is.
    int32_t event_id = 0;
    HardEvent freed = HardEvent::V_MTE2;
};

template <class T>
class LocalTensor {
  public:
    LocalTensor() = default;
    LocalTensor(Buffer* buffer, uint32_t offset, uint32_t size_bytes)
        : buffer_(buffer), offset_(offset), size_bytes_(size_bytes) {}

    LocalTensor operator[](uint32_t offset) const {
        const uint64_t skipped = uint64_t{offset} * sizeof(T);
        pypto_twin::require(skipped <= size_bytes_, "element ", offset, " of a LocalTensor of ",
                            size_bytes_, " B");
        const auto bytes = static_cast<uint32_t>(skipped);
        return LocalTensor(buffer_, offset_ + bytes, size_bytes_ - bytes);
    }

    template <class U>
    LocalTensor<U> ReinterpretCast() const {
        return LocalTensor<U>(buffer_, offset_, size_bytes_);
    }

    Buffer* buffer() const { return buffer_; }
    uint32_t offset() const { return offset_; }

    void SetValue(uint32_t index, T value) const {
        T* elements = reinterpret_cast<T*>(claim(uint64_t{index + 1} * sizeof(T)));
        elements[index] = value;
        pypto_twin::vector_core().record(pypto_twin::Op::UB_WORK,
                                         offset_ + uint64_t{index} * sizeof(T), sizeof(T));
    }

    // The address of bytes that an instruction touches.
    uint8_t* claim(uint64_t size_bytes) const {
        pypto_twin::require(buffer_ != nullptr, "a LocalTensor without a buffer");
        pypto_twin::require(size_bytes <= size_bytes_, size_bytes, " B from ub+", offset_,
                            ", where the buffer has ", size_bytes_, " B left");
        pypto_twin::require(offset_ % pypto_twin::block_bytes == 0, "ub+", offset_,
                            " is no multiple of 32 B");
        return pypto_twin::vector_core().ub + offset_;
    }

  private:
    Buffer* buffer_ = nullptr;
    uint32_t offset_ = 0;
    uint32_t size_bytes_ = 0;
};

class TPipe {
  public:
    TPipe() = default;
    TPipe(const TPipe&) = delete;
    TPipe& operator=(const TPipe&) = delete;

    // Whoever is freed last leaves a flag behind; none may outlive the kernel.
    ~TPipe() {
        for (uint32_t i = 0; i < used_; ++i) {
            if (!buffers_[i].is_free_flagged) continue;
            if (buffers_[i].freed == HardEvent::V_MTE2) {
                WaitFlag<HardEvent::V_MTE2>(buffers_[i].event_id);
            } else {
                WaitFlag<HardEvent::MTE3_V>(buffers_[i].event_id);
            }
        }
    }

    template <class Queue>
    void InitBuffer(Queue& queue, uint32_t count, uint32_t size_bytes) {
        queue.first_ = buffers_ + used_;
        queue.count_ = count;
        for (uint32_t i = 0; i < count; ++i) {
            Buffer* buffer = take(size_bytes);
            buffer->freed = Queue::freed;
            buffer->event_id = event_ids_[static_cast<uint32_t>(Queue::freed)]++;
            pypto_twin::require(buffer->event_id < max_event_ids, "more than 8 event ids");
        }
    }

    template <class Scratch>
    void InitBuffer(Scratch& scratch, uint32_t size_bytes) {
        scratch.buffer_ = take(size_bytes);
    }

  private:
    static constexpr uint32_t max_buffers = 64;
    static constexpr int32_t max_event_ids = 8;

    Buffer* take(uint32_t size_bytes) {
        using pypto_twin::ub_bytes;
        pypto_twin::require(used_ < max_buffers, "more than ", max_buffers, " buffers");
        pypto_twin::require(size_bytes > 0, "a buffer of no size");
        const uint64_t whole = (uint64_t{size_bytes} + pypto_twin::block_bytes - 1) /
                               pypto_twin::block_bytes * pypto_twin::block_bytes;
        pypto_twin::require(whole <= ub_bytes - end_, "a buffer of ", whole, " B at ub+", end_,
                            "; UB has ", ub_bytes, " B");
        Buffer* buffer = &buffers_[used_++];
        buffer->offset = end_;
        buffer->size_bytes = static_cast<uint32_t>(whole);
        end_ += buffer->size_bytes;
        return buffer;
    }

    Buffer buffers_[max_buffers];
    uint32_t used_ = 0;
    uint32_t end_ = 0;
    int32_t event_ids_[4] = {};
};

// A queue between two pipes: EnQue sets a flag for the next one and DeQue waits for it; FreeTensor
// sets one for the pipe before, and the AllocTensor that takes the buffer again waits for that.
template <TPosition position, int32_t depth>
class TQue {
    static_assert(position == TPosition::VECIN || position == TPosition::VECOUT);
    static_assert(depth == 1, "one tensor at a time waits in a queue of the twin");

  public:
    static constexpr bool is_input = position == TPosition::VECIN;
    static constexpr HardEvent filled = is_input ? HardEvent::MTE2_V : HardEvent::V_MTE3;
    static constexpr HardEvent freed = is_input ? HardEvent::V_MTE2 : HardEvent::MTE3_V;

    template <class T>
    LocalTensor<T> AllocTensor() {
        pypto_twin::require(count_ > 0, "AllocTensor without InitBuffer");
        Buffer* buffer = first_ + next_;
        next_ = (next_ + 1) % count_;
        move(buffer, Buffer::State::FREE, Buffer::State::OCCUPIED, "AllocTensor");
        if (buffer->is_free_flagged) WaitFlag<freed>(buffer->event_id);
        buffer->is_free_flagged = false;
        return LocalTensor<T>(buffer, buffer->offset, buffer->size_bytes);
    }

    template <class T>
    bool EnQue(const LocalTensor<T>& tensor) {
        pypto_twin::require(queued_ == nullptr, "EnQue beyond the depth of the queue");
        queued_ = own(tensor.buffer());
        move(queued_, Buffer::State::OCCUPIED, Buffer::State::QUEUED, "EnQue");
        SetFlag<filled>(queued_->event_id);
        return true;
    }

    template <class T>
    LocalTensor<T> DeQue() {
        pypto_twin::require(queued_ != nullptr, "DeQue of an empty queue");
        Buffer* buffer = queued_;
        queued_ = nullptr;
        move(buffer, Buffer::State::QUEUED, Buffer::State::DEQUEUED, "DeQue");
        WaitFlag<filled>(buffer->event_id);
        return LocalTensor<T>(buffer, buffer->offset, buffer->size_bytes);
    }

    template <class T>
    void FreeTensor(LocalTensor<T>& tensor) {
        Buffer* buffer = own(tensor.buffer());
        move(buffer, Buffer::State::DEQUEUED, Buffer::State::FREE, "FreeTensor");
        SetFlag<freed>(buffer->event_id);
        buffer->is_free_flagged = true;
    }

  private:
    friend class TPipe;

    Buffer* own(Buffer* buffer) const {
        const bool is_own = first_ <= buffer && buffer < first_ + count_;
        pypto_twin::require(is_own, "a tensor of another queue");
        return buffer;
    }

    static void move(Buffer* buffer, Buffer::State from, Buffer::State to, const char* what) {
        pypto_twin::require(buffer->state == from, what, " of the buffer at ub+", buffer->offset,
                            ", which is at another point of its way through the queue");
        buffer->state = to;
    }

    Buffer* first_ = nullptr;
    uint32_t count_ = 0;
    uint32_t next_ = 0;
    Buffer* queued_ = nullptr;
};

template <TPosition position>
class TBuf {
  public:
    template <class T>
    LocalTensor<T> Get() {
        pypto_twin::require(buffer_ != nullptr, "Get without InitBuffer");
        return LocalTensor<T>(buffer_, buffer_->offset, buffer_->size_bytes);
    }

  private:
    friend class TPipe;
    Buffer* buffer_ = nullptr;
};

}  // namespace AscendC

#endif  // PYPTO_TWIN_QUEUES_H
