import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Pages that hold secrets and nothing else. They are never unmapped, so that a signal handler may walk along them.
enum SecretPages {
  /// Those that many secrets share.
  static let byteCount = 65_536
  static let headerByteCount = 64

  /// What stands at the beginning of pages.
  private struct Header {
    /// The address of those that were mapped before.
    var older: UInt
    /// With the header.
    var byteCount: Int
    var isInUse: Bool
    var isLocked: Bool
  }

  private static let newest = Atomic<UInt>(0)

  /// How much memory this process may keep from the swap file.
  static let lockLimit: Int = {
    var limit = rlimit()
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue)
    #else
      let resource = RLIMIT_MEMLOCK
    #endif
    guard getrlimit(resource, &limit) == 0 else { return 0 }
    return Int(clamping: limit.rlim_cur)
  }()

  /// Maps pages of zeros. That they cannot be locked is no error: the limit of the system may be nothing.
  ///
  /// Ends the process where the system has no memory, as Swift's own allocator does. No input brings that about by
  /// itself: what is read of one is below a named limit before memory is asked for.
  static func map(_ count: Int, locked: Bool) -> (content: UInt, isLocked: Bool) {
    var flags = MAP_PRIVATE | MAP_ANON
    #if os(Linux)
      // One call for all of them is several times as fast as a fault for each.
      if count <= byteCount { flags |= MAP_POPULATE }
    #endif
    let mapped = mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0)
    guard let mapped, mapped != UnsafeMutableRawPointer(bitPattern: -1) else {
      fatalError("out of memory")
    }
    #if os(Linux)
      // Core dumps are off in the program; whoever uses the library may have them on.
      madvise(mapped, count, Int32(MADV_DONTDUMP))
    #endif
    let isLocked = locked && mlock(mapped, count) == 0
    let address = UInt(bitPattern: mapped)
    var older = newest.load(ordering: .acquiring)
    while true {
      mapped.storeBytes(
        of: Header(older: older, byteCount: count, isInUse: true, isLocked: isLocked), as: Header.self)
      let exchange = newest.compareExchange(expected: older, desired: address, ordering: .acquiringAndReleasing)
      if exchange.exchanged { break }
      older = exchange.original
    }
    return (address + UInt(headerByteCount), isLocked)
  }

  /// Gives the system the memory of pages of one secret, which stay mapped and are zeros when they are used again.
  static func returnMemory(of content: UInt, _ count: Int) {
    guard let header = header(of: content) else { return }
    header.pointee.isInUse = false
    #if os(Linux)
      // The first page has the header.
      let pageSize = Int(getpagesize())
      let all = header.pointee.byteCount
      guard !header.pointee.isLocked, all > pageSize else { return }
      madvise(UnsafeMutableRawPointer(header) + pageSize, all - pageSize, Int32(MADV_DONTNEED))
    #endif
  }

  /// Takes pages of one secret that were given back.
  static func use(_ content: UInt) { header(of: content)?.pointee.isInUse = true }

  /// Overwrites all that stands in pages that are in use.
  static func wipeContents() {
    var address = newest.load(ordering: .acquiring)
    while let header = UnsafeMutablePointer<Header>(bitPattern: address) {
      if header.pointee.isInUse {
        wipe(
          UnsafeMutableRawBufferPointer(
            start: UnsafeMutableRawPointer(header) + headerByteCount,
            count: header.pointee.byteCount - headerByteCount))
      }
      address = header.pointee.older
    }
  }

  private static func header(of content: UInt) -> UnsafeMutablePointer<Header>? {
    UnsafeMutablePointer(bitPattern: content - UInt(headerByteCount))
  }
}
