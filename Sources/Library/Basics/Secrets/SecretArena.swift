/// Allocates the memory of all secrets in dedicated pages.
///
/// The pages are excluded from core dumps, and locked against swapping up to the system's limit. All pages are known,
/// so a process that ends abruptly can overwrite them. Small secrets share a page. Released memory is overwritten and
/// reused; the pages stay mapped.
package final class SecretArena: Sendable {
  /// For passwords and keys. The system's limit of locked memory is small, and these are more important than the secret
  /// of one item.
  package static let keys = SecretArena(lockLimit: SecretPages.lockLimit)
  /// For the secrets of items, and data derived from them.
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

  /// The pages and their free slots. The free slots of a small size form a list through their first bytes, which are
  /// zeroed before a slot is used.
  private struct State {
    let lockLimit: Int
    var mappedByteCount = 0
    var lockedByteCount = 0
    private var freeSmall = [UInt](repeating: 0, count: SlotSize.smallClassCount)
    private var freeLarge: [Int: [UInt]] = [:]
    private var next: UInt = 0
    private var end: UInt = 0

    init(lockLimit: Int) { self.lockLimit = lockLimit }

    mutating func allocate(_ size: SlotSize) -> UInt {
      guard let sizeClass = size.smallClass else { return allocateLarge(size.byteCount) }
      let slot = freeSmall[sizeClass]
      if slot != 0, let pointer = UnsafeMutableRawPointer(bitPattern: slot) {
        freeSmall[sizeClass] = pointer.load(as: UInt.self)
        pointer.storeBytes(of: 0, as: UInt.self)
        return slot
      }
      if Int(end - next) < size.byteCount {
        // The rest of the previous pages is too small and stays unused.
        next = map(SecretPages.byteCount - SecretPages.headerByteCount)
        end = next + UInt(SecretPages.byteCount - SecretPages.headerByteCount)
      }
      defer { next += UInt(size.byteCount) }
      return next
    }

    mutating func free(_ slot: UInt, _ size: SlotSize) {
      guard let sizeClass = size.smallClass else {
        freeLarge[size.byteCount, default: []].append(slot)
        SecretPages.returnMemory(of: slot, size.byteCount)
        return
      }
      UnsafeMutableRawPointer(bitPattern: slot)?.storeBytes(of: freeSmall[sizeClass], as: UInt.self)
      freeSmall[sizeClass] = slot
    }

    private mutating func allocateLarge(_ byteCount: Int) -> UInt {
      if let slot = freeLarge[byteCount]?.popLast() {
        SecretPages.use(slot)
        return slot
      }
      return map(byteCount)
    }

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

/// The size that is allocated for a secret: one of few sizes, so that released memory fits later secrets.
private struct SlotSize {
  let byteCount: Int
  /// The index of a size that shares pages, or `nil` if the size has pages of its own.
  let smallClass: Int?

  /// The difference between neighboring sizes up to 256 bytes.
  private static let smallestStep = 16
  /// The number of sizes between two powers of two above 256 bytes.
  private static let stepsPerPower = 4
  /// The largest size that shares pages.
  private static let largestSmall = 16_384
  /// 16 steps of 16 bytes, then 4 steps for each power of two up to the largest small size.
  static let smallClassCount = 16 + 6 * stepsPerPower

  init(holding count: Int) {
    if count <= 256 {
      let stepCount = max(1, (count + Self.smallestStep - 1) / Self.smallestStep)
      (byteCount, smallClass) = (stepCount * Self.smallestStep, stepCount - 1)
      return
    }
    // The largest power of two below the count.
    let power = Int.bitWidth - (count - 1).leadingZeroBitCount - 1
    guard count <= Self.largestSmall else {
      byteCount = 1 << (power + 1)
      smallClass = nil
      return
    }
    let step = (1 << power) / Self.stepsPerPower
    let stepCount = (count - (1 << power) + step - 1) / step
    byteCount = (1 << power) + stepCount * step
    // 256 is the eighth power of two.
    smallClass = 16 + (power - 8) * Self.stepsPerPower + stepCount - 1
  }
}
