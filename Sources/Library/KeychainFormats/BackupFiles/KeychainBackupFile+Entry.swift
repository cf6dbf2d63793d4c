extension KeychainBackupFile {
  /// An item as the file stores it.
  package struct Entry: Sendable {
    /// The bytes that contain the blob and the reference. The entries of a file share its bytes; a new entry has its
    /// own.
    private let source: [UInt8]
    private let blobPart: Part
    private let referencePart: Part
    /// The offset of the blob in the file; `max` if there is none.
    private var blobStart = UInt32.max
    /// The kind whose array contains the item.
    package var kind: ItemKind

    /// A range in `source`. It takes only 8 bytes, because every entry has two ranges. Files of 4 GB or more are not
    /// read.
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

    /// Creates an entry for an encrypted item.
    ///
    /// - Parameters:
    ///   - kind: The kind of item.
    ///   - blob: The encrypted item, or `nil` if there is none.
    ///   - persistentReference: The value of `v_PersistentRef`, or `nil` if there is none.
    package init(kind: ItemKind, blob: [UInt8]?, persistentReference: [UInt8]? = nil) {
      self.kind = kind
      let count = blob?.count ?? 0
      var bytes: [UInt8] = []
      bytes.reserveCapacity(count + (persistentReference?.count ?? 0))
      for part in [blob, persistentReference] { bytes += part ?? [] }
      source = bytes
      blobPart = Part(blob.map { _ in 0..<count })
      referencePart = Part(persistentReference.map { count..<(count + $0.count) })
    }

    /// Creates an entry that was read from a file.
    ///
    /// - Parameters:
    ///   - kind: The kind whose array contains the item.
    ///   - source: The file's bytes, or none if only the offsets are wanted.
    ///   - blob: The range of the value of `v_Data`, or `nil` if there is none.
    ///   - persistentReference: The range of the value of `v_PersistentRef`, or `nil` if there is none.
    package init(kind: ItemKind, in source: [UInt8], blob: Range<Int>?, persistentReference: Range<Int>?) {
      self.kind = kind
      self.source = source
      blobPart = Part(blob)
      referencePart = Part(persistentReference)
      blobStart = blob.map { UInt32(clamping: $0.lowerBound) } ?? .max
    }

    /// A copy of the encrypted item, or `nil` if the entry has none. Without a blob, only this item is unreadable.
    package var blob: [UInt8]? {
      get { blobPart.bytes(of: source) }
      set { self = Entry(kind: kind, blob: newValue, persistentReference: persistentReference) }
    }
    /// The value of `v_PersistentRef`, unchanged: usually 12 or 20 bytes. `PersistentReference` parses it.
    package var persistentReference: [UInt8]? { referencePart.bytes(of: source) }
    /// The offset of the blob in the file, in bytes from its start, or `nil` if the entry is not from a file.
    package var blobOffset: Int? { blobStart == .max ? nil : Int(blobStart) }

    /// Removes the offset, which is an offset in a converted copy and not in the original file.
    mutating func clearOffset() { blobStart = .max }
  }
}

extension KeychainBackupFile.Entry {
  /// The maximum size of the bytes that contain an entry. Its ranges cannot represent larger offsets.
  package static let maximumSourceByteCount = Int(UInt32.max) - 1

  var hasBlob: Bool { blobPart.range != nil }
  var hasPersistentReference: Bool { referencePart.range != nil }
  /// The number of bytes of the blob and the reference together.
  package var byteCount: Int { ranges.reduce(0) { $0 + $1.count } }

  /// The ranges of the blob and the reference in the bytes from which the entry was read.
  package var ranges: [Range<Int>] { [blobPart.range, referencePart.range].compactMap(\.self) }

  /// Creates the same entry with its bytes in a different array. If the array is empty, only the offsets remain.
  ///
  /// - Parameters:
  ///   - entry: The entry.
  ///   - bytes: A part of the file that contains both ranges of the entry, or no bytes.
  ///   - start: The offset of `bytes` in the file.
  package init(_ entry: Self, in bytes: [UInt8], beginningAt start: Int = 0) {
    kind = entry.kind
    source = bytes
    blobPart = Part(entry.blobPart.range.map { $0.lowerBound - start..<$0.upperBound - start })
    referencePart = Part(entry.referencePart.range.map { $0.lowerBound - start..<$0.upperBound - start })
    blobStart = entry.blobStart
  }

  /// Creates the same entry with copies of its bytes.
  ///
  /// - Parameters:
  ///   - entry: The entry.
  ///   - parts: The bytes of each range in `ranges`, in the same order.
  package init(_ entry: Self, copying parts: [[UInt8]]) {
    let blob = entry.blobPart.range == nil ? nil : parts.first
    self.init(kind: entry.kind, blob: blob, persistentReference: entry.referencePart.range == nil ? nil : parts.last)
    blobStart = entry.blobStart
  }
}

extension KeychainBackupFile.Entry: Hashable {
  /// Returns whether both have the same kind, bytes and offset.
  package static func == (left: Self, right: Self) -> Bool {
    left.kind == right.kind && left.blob == right.blob && left.persistentReference == right.persistentReference
      && left.blobOffset == right.blobOffset
  }

  /// Hashes the kind and the blob.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(blob)
  }
}
