/// Allocates the memory of all secrets in dedicated pages.
///
/// The pages are excluded from core dumps, and locked against swapping up to the system's limit. The arena has a list of
/// all pages, so a process that ends abruptly can overwrite them. Small secrets share a page. Released memory is
/// overwritten and reused; the pages stay mapped.
package final class SecretArena: Sendable {
  /// The arena for passwords and keys. It may use the system's complete limit of locked memory, because a key matters
  /// more than the secret of one item.
  package static let keys = SecretArena(lockLimit: SecretPages.lockLimit)
  /// The arena for the secrets of items, and data derived from them.
  package static let items = SecretArena(lockLimit: SecretPages.lockLimit / 2)

  private let state: Locked<State>

  /// Creates an arena.
  ///
  /// - Parameter limit: The maximum number of bytes to lock.
  init(lockLimit limit: Int) { state = Locked(State(lockLimit: limit)) }

  /// Returns zeroed memory. Its address is not `nil`, even if `count` is 0.
  package func allocate(_ count: Int) -> UnsafeMutableRawBufferPointer {
    let address = state.withLock { state in state.allocate(SlotSize(holding: count)) }
    return UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(bitPattern: address), count: count)
  }

  /// Overwrites memory and makes it available again.
  package func release(_ buffer: UnsafeMutableRawBufferPointer) {
    guard let start = buffer.baseAddress else { return }
    wipe(buffer)
    let address = UInt(bitPattern: start)
    let size = SlotSize(holding: buffer.count)
    state.withLock { state in state.free(address, size) }
  }

  /// The number of bytes in pages, and how many of them are locked against swapping.
  package var pageByteCounts: (mapped: Int, locked: Int) {
    state.withLock { ($0.mappedByteCount, $0.lockedByteCount) }
  }

  /// Overwrites all secrets, for a process that is about to end. Other threads that still use a secret then read zeros.
  ///
  /// Safe to call from a signal handler.
  package static func wipeAll() { SecretPages.wipeContents() }

  /// The pages and their slots. A slot is memory for one secret, given by its address.
  private struct State {
    let lockLimit: Int
    var mappedByteCount = 0
    var lockedByteCount = 0
    /// The first free slot of each small size, or 0. The first bytes of a free slot contain the address of the next
    /// free slot; they are zeroed before the slot is used.
    private var firstFreeSlots = [UInt](repeating: 0, count: SlotSize.smallClassCount)
    /// The free slots with pages of their own, by their number of bytes.
    private var freeLargeSlots: [Int: [UInt]] = [:]
    /// The unused part of the newest shared pages.
    private var unusedStart: UInt = 0
    private var unusedEnd: UInt = 0

    init(lockLimit: Int) { self.lockLimit = lockLimit }

    mutating func allocate(_ size: SlotSize) -> UInt {
      guard let sizeClass = size.smallClass else { return allocateLarge(size.byteCount) }
      let freeSlot = firstFreeSlots[sizeClass]
      if freeSlot != 0, let pointer = UnsafeMutableRawPointer(bitPattern: freeSlot) {
        firstFreeSlots[sizeClass] = pointer.load(as: UInt.self)
        pointer.storeBytes(of: 0, as: UInt.self)
        return freeSlot
      }
      if Int(unusedEnd - unusedStart) < size.byteCount {
        // The remainder of the previous pages is too small and stays unused.
        let contentByteCount = SecretPages.byteCount - SecretPages.headerByteCount
        unusedStart = map(contentByteCount)
        unusedEnd = unusedStart + UInt(contentByteCount)
      }
      defer { unusedStart += UInt(size.byteCount) }
      return unusedStart
    }

    mutating func free(_ slot: UInt, _ size: SlotSize) {
      guard let sizeClass = size.smallClass else {
        freeLargeSlots[size.byteCount, default: []].append(slot)
        SecretPages.returnMemory(of: slot)
        return
      }
      UnsafeMutableRawPointer(bitPattern: slot)?.storeBytes(of: firstFreeSlots[sizeClass], as: UInt.self)
      firstFreeSlots[sizeClass] = slot
    }

    private mutating func allocateLarge(_ byteCount: Int) -> UInt {
      if let slot = freeLargeSlots[byteCount]?.popLast() {
        SecretPages.use(slot)
        return slot
      }
      return map(byteCount)
    }

    /// Maps pages, and returns the address after their header.
    private mutating func map(_ byteCount: Int) -> UInt {
      let total = byteCount + SecretPages.headerByteCount
      let shouldLock = byteCount < SecretPages.byteCount && lockedByteCount + total <= lockLimit
      let pages = SecretPages.map(total, locked: shouldLock)
      mappedByteCount += total
      if pages.isLocked { lockedByteCount += total }
      return pages.content
    }
  }
}

/// The size that is allocated for a secret. There are only a few sizes, so later secrets can reuse released memory.
///
/// Up to 256 bytes, the sizes are the multiples of 16. Above 256 bytes, each power of two is reached in four equal
/// steps: 320, 384, 448, 512, then 640 and so on up to 16,384. A larger secret gets the next power of two, and pages of
/// its own.
private struct SlotSize {
  let byteCount: Int
  /// The index of a size that shares pages, or `nil` if the size has pages of its own.
  let smallClass: Int?

  /// The difference between neighboring sizes up to 256 bytes.
  private static let smallestStep = 16
  /// The number of sizes up to 256 bytes.
  private static let smallestSizeCount = 16
  /// The number of sizes from one power of two to the next, above 256 bytes.
  private static let stepsPerPower = 4
  /// The exponent of 256, where these steps begin.
  private static let firstExponent = 8
  /// The exponent of 16,384, where these steps end: the largest size that shares pages.
  private static let lastExponent = 14
  /// The number of sizes that share pages.
  static let smallClassCount = smallestSizeCount + (lastExponent - firstExponent) * stepsPerPower

  init(holding count: Int) {
    if count <= Self.smallestSizeCount * Self.smallestStep {
      let stepCount = max(1, (count + Self.smallestStep - 1) / Self.smallestStep)
      (byteCount, smallClass) = (stepCount * Self.smallestStep, stepCount - 1)
      return
    }
    // The exponent of the largest power of two below the count.
    let exponent = Int.bitWidth - (count - 1).leadingZeroBitCount - 1
    guard exponent < Self.lastExponent else {
      byteCount = 1 << (exponent + 1)
      smallClass = nil
      return
    }
    let power = 1 << exponent
    let step = power / Self.stepsPerPower
    let stepCount = (count - power + step - 1) / step
    byteCount = power + stepCount * step
    smallClass = Self.smallestSizeCount + (exponent - Self.firstExponent) * Self.stepsPerPower + stepCount - 1
  }
}
