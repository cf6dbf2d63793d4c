import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Pages that contain only secrets. They are never unmapped, so a signal handler can safely iterate over them.
enum SecretPages {
  /// The size of pages that several secrets share.
  static let byteCount = 65_536
  /// The number of bytes before the content of pages. They contain the header.
  static let headerByteCount = 64

  /// The header at the start of pages.
  private struct Header {
    /// The address of the pages that were mapped before these, or 0.
    var older: UInt
    /// The size including the header.
    var byteCount: Int
    var isInUse: Bool
    var isLocked: Bool
  }

  /// The address of the pages that were mapped last, or 0. `Header.older` leads from there to all other pages.
  private static let newest = Atomic<UInt>(0)

  /// The number of bytes that this process may lock against swapping.
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

  /// Maps zeroed pages, and locks them if requested. If locking fails, the pages are used unlocked, because the system's
  /// limit may be 0.
  ///
  /// Ends the process if the system has no memory, as Swift's own allocator does. Input cannot cause this by itself:
  /// sizes from a file are checked against a limit before memory is requested.
  static func map(_ count: Int, locked: Bool) -> (content: UInt, isLocked: Bool) {
    var flags = MAP_PRIVATE | MAP_ANON
    #if os(Linux)
      // One call for all pages is several times as fast as a page fault for each.
      if count <= byteCount { flags |= MAP_POPULATE }
    #endif
    let mapped = mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0)
    // -1 is `MAP_FAILED`.
    guard let mapped, mapped != UnsafeMutableRawPointer(bitPattern: -1) else {
      fatalError("out of memory")
    }
    #if os(Linux)
      // The program turns core dumps off; other users of the library may not.
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

  /// Returns the memory of a single secret's pages to the system. The pages stay mapped and are zeroed when they are
  /// reused.
  static func returnMemory(of content: UInt) {
    guard let header = header(of: content) else { return }
    header.pointee.isInUse = false
    #if os(Linux)
      // The first page contains the header.
      let pageSize = Int(getpagesize())
      let total = header.pointee.byteCount
      guard !header.pointee.isLocked, total > pageSize else { return }
      madvise(UnsafeMutableRawPointer(header) + pageSize, total - pageSize, Int32(MADV_DONTNEED))
    #endif
  }

  /// Marks returned pages as used again.
  static func use(_ content: UInt) { header(of: content)?.pointee.isInUse = true }

  /// Overwrites the contents of all pages in use.
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
