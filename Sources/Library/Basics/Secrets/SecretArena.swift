/// The memory that every secret of the process lies in: pages of their own, kept from the swap file as far as the system's
/// limit reaches, left out of core dumps, and known, so that a program which ends at once can overwrite them all.
///
/// Many small secrets share a page. What is given back is overwritten and used for the next one; the pages stay.
package final class SecretArena: Sendable {
  /// Passwords and keys. The limit of locked memory is small: what opens everything comes before the secret of one item.
  package static let keys = SecretArena(mayLock: SecretPages.lockLimit)
  /// Secrets of items, and what is made of them.
  package static let items = SecretArena(mayLock: SecretPages.lockLimit / 2)

  private let state: Locked<State>

  /// - Parameter limit: How many bytes are locked at most.
  init(mayLock limit: Int) { state = Locked(State(lockLimit: limit)) }

  /// Returns memory of zeros, at an address also where it is none.
  package func allocate(_ count: Int) -> UnsafeMutableRawBufferPointer {
    let address = state.withLock { state in state.take(SlotSize(holding: count)) }
    return UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(bitPattern: address), count: count)
  }

  /// Overwrites memory and takes it back.
  package func release(_ buffer: UnsafeMutableRawBufferPointer) {
    guard let start = buffer.baseAddress else { return }
    wipe(buffer)
    let address = UInt(bitPattern: start)
    let size = SlotSize(holding: buffer.count)
    state.withLock { state in state.giveBack(address, size) }
  }

  /// How many bytes of pages there are, and how many of them are kept from the swap file.
  package var pageByteCounts: (mapped: Int, locked: Int) {
    state.withLock { ($0.mappedByteCount, $0.lockedByteCount) }
  }

  /// Overwrites every secret there is, for a process that ends now: whoever still works with one works with zeros.
  ///
  /// Does nothing that a signal handler may not do.
  package static func wipeAll() { SecretPages.wipeContents() }

  /// Pages, and what is free in them. Of small slots what is free is chained through its first bytes, which are zeros
  /// again before it is used.
  private struct State {
    let lockLimit: Int
    var mappedByteCount = 0
    var lockedByteCount = 0
    private var free = [UInt](repeating: 0, count: SlotSize.smallClassCount)
    private var freeLarge: [Int: [UInt]] = [:]
    private var next: UInt = 0
    private var end: UInt = 0

    init(lockLimit: Int) { self.lockLimit = lockLimit }

    mutating func take(_ size: SlotSize) -> UInt {
      guard let number = size.smallClass else { return takeLarge(size.byteCount) }
      let slot = free[number]
      if slot != 0, let pointer = UnsafeMutableRawPointer(bitPattern: slot) {
        free[number] = pointer.load(as: UInt.self)
        pointer.storeBytes(of: 0, as: UInt.self)
        return slot
      }
      if Int(end - next) < size.byteCount {
        // What is left at the end of the last pages is too small, and stays.
        next = map(SecretPages.byteCount - SecretPages.headerByteCount)
        end = next + UInt(SecretPages.byteCount - SecretPages.headerByteCount)
      }
      defer { next += UInt(size.byteCount) }
      return next
    }

    mutating func giveBack(_ slot: UInt, _ size: SlotSize) {
      guard let number = size.smallClass else {
        freeLarge[size.byteCount, default: []].append(slot)
        SecretPages.returnMemory(of: slot, size.byteCount)
        return
      }
      UnsafeMutableRawPointer(bitPattern: slot)?.storeBytes(of: free[number], as: UInt.self)
      free[number] = slot
    }

    private mutating func takeLarge(_ byteCount: Int) -> UInt {
      if let slot = freeLarge[byteCount]?.popLast() {
        SecretPages.use(slot)
        return slot
      }
      return map(byteCount)
    }

    private mutating func map(_ byteCount: Int) -> UInt {
      let all = byteCount + SecretPages.headerByteCount
      let mayLock = byteCount < SecretPages.byteCount && lockedByteCount + all <= lockLimit
      let pages = SecretPages.map(all, locked: mayLock)
      mappedByteCount += all
      if pages.isLocked { lockedByteCount += all }
      return pages.content
    }
  }
}

/// How much room a secret gets: sizes of which few are wasted on any, so that what one gives back fits the next.
private struct SlotSize {
  let byteCount: Int
  /// The number of a size that shares pages; `nil` for one that has its own.
  let smallClass: Int?

  private static let finest = 16
  private static let steps = 4
  private static let largestSmall = 16_384
  /// Sixteen steps of 16 bytes, then four to each power of two, up to the largest.
  static let smallClassCount = 16 + 6 * steps

  init(holding count: Int) {
    if count <= 256 {
      let number = max(1, (count + Self.finest - 1) / Self.finest)
      (byteCount, smallClass) = (number * Self.finest, number - 1)
      return
    }
    // The power of two below or at the count, but for the count being one itself.
    let power = Int.bitWidth - (count - 1).leadingZeroBitCount - 1
    guard count <= Self.largestSmall else {
      byteCount = 1 << (power + 1)
      smallClass = nil
      return
    }
    let step = (1 << power) / Self.steps
    let number = (count - (1 << power) + step - 1) / step
    byteCount = (1 << power) + number * step
    smallClass = 16 + (power - 8) * Self.steps + number - 1
  }
}
