import Basics

extension KeychainBackupFile {
  /// One item as the file holds it.
  public struct Entry: Sendable {
    /// The file that was read, so that a hundred thousand items are not there twice; of an entry that was made its own
    /// bytes.
    private let source: [UInt8]
    private let sealed: Part
    private let reference: Part
    /// Where the blob begins in the file; `max` where it has no place that anybody could look at.
    private var place = UInt32.max
    /// The kind whose array the item stands in.
    public var kind: ItemKind

    /// Where bytes of an entry lie. As small as can be: there are two for every item, and no file that is read has four
    /// gigabytes.
    private struct Part {
      private var start: UInt32 = .max
      private var count: UInt32 = 0

      init(_ range: Range<Int>?) {
        guard let range, let start = UInt32(exactly: range.lowerBound), let count = UInt32(exactly: range.count) else {
          return
        }
        (self.start, self.count) = (start, count)
      }

      var range: Range<Int>? { start == .max ? nil : Int(start)..<Int(start) + Int(count) }

      func bytes(of source: [UInt8]) -> [UInt8]? {
        range.flatMap { $0.upperBound <= source.count ? Array(source[$0]) : nil }
      }
    }

    /// Creates an entry of an item that was sealed.
    ///
    /// - Parameters:
    ///   - kind: The kind of item.
    ///   - blob: The sealed item; `nil` for an item without one.
    ///   - persistentReference: The value of `v_PersistentRef`, if it has one.
    public init(kind: ItemKind, blob: [UInt8]?, persistentReference: [UInt8]? = nil) {
      self.kind = kind
      let count = blob?.count ?? 0
      var bytes: [UInt8] = []
      bytes.reserveCapacity(count + (persistentReference?.count ?? 0))
      for part in [blob, persistentReference] { bytes += part ?? [] }
      source = bytes
      sealed = Part(blob.map { _ in 0..<count })
      reference = Part(persistentReference.map { count..<(count + $0.count) })
    }

    /// An entry of a file that is read, or of one whose bytes are kept elsewhere.
    ///
    /// - Parameters:
    ///   - source: The file's bytes; none where its place alone is held.
    ///   - blob: Where the value of `v_Data` lies in them; `nil` for an item without one.
    ///   - persistentReference: The same of `v_PersistentRef`.
    package init(kind: ItemKind, in source: [UInt8], blob: Range<Int>?, persistentReference: Range<Int>?) {
      self.kind = kind
      self.source = source
      sealed = Part(blob)
      reference = Part(persistentReference)
      place = blob.map { UInt32(clamping: $0.lowerBound) } ?? .max
    }

    /// The sealed item, copied out of what was read; `nil` where the file has none, which makes the item unreadable and no
    /// other.
    public var blob: [UInt8]? {
      get { sealed.bytes(of: source) }
      set { self = Entry(kind: kind, blob: newValue, persistentReference: persistentReference) }
    }
    /// The value of `v_PersistentRef`: twelve or twenty bytes that `PersistentReference` reads, kept as they came.
    public var persistentReference: [UInt8]? { reference.bytes(of: source) }
    /// Where the blob's bytes begin in the file that was read, in bytes from its start; `nil` for an entry that was made.
    public var blobOffset: Int? { place == .max ? nil : Int(place) }

    /// Its place is none that anybody could look at.
    mutating func losePlace() { place = .max }
  }
}

extension KeychainBackupFile.Entry {
  /// The most bytes that there may be where its blob and its reference lie.
  package static let maximumSourceByteCount = Int(UInt32.max) - 1

  var hasBlob: Bool { sealed.range != nil }
  var hasPersistentReference: Bool { reference.range != nil }
  /// Of both.
  package var byteCount: Int { ranges.reduce(0) { $0 + $1.count } }

  /// Where its blob and its reference lie in the bytes that it was read from.
  package var ranges: [Range<Int>] { [sealed.range, reference.range].compactMap(\.self) }

  /// The same entry out of other bytes; out of none its places are left.
  ///
  /// - Parameters:
  ///   - bytes: A part of the file in which both of its ranges are.
  ///   - start: Where that part begins.
  package init(_ entry: Self, in bytes: [UInt8], beginningAt start: Int = 0) {
    kind = entry.kind
    source = bytes
    sealed = Part(entry.sealed.range.map { $0.lowerBound - start..<$0.upperBound - start })
    reference = Part(entry.reference.range.map { $0.lowerBound - start..<$0.upperBound - start })
    place = entry.place
  }

  /// The same with the bytes of each of its ranges for themselves, in their order.
  package init(_ entry: Self, of parts: [[UInt8]]) {
    let blob = entry.sealed.range == nil ? nil : parts.first
    self.init(kind: entry.kind, blob: blob, persistentReference: entry.reference.range == nil ? nil : parts.last)
    place = entry.place
  }
}

extension KeychainBackupFile.Entry: Hashable {
  /// Whether both are of one kind with the same bytes, wherever these lie, and at one place of their files.
  public static func == (left: Self, right: Self) -> Bool {
    left.kind == right.kind && left.blob == right.blob && left.persistentReference == right.persistentReference
      && left.blobOffset == right.blobOffset
  }

  /// By the bytes.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(blob)
  }
}
