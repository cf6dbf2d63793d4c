package import Basics
import KeychainFormats

/// The payloads that a backup stores, by the names under which they are stored, with their sizes as stored.
public struct StoredPayloads: Sendable, Equatable {
  /// Twenty bytes of SHA-1 without a heap allocation: a large backup has half a million of them.
  package struct Name: Hashable, Sendable {
    let first: UInt64
    let second: UInt64
    let third: UInt32

    /// - Returns: `nil` unless there are forty lower-case hexadecimal digits.
    package init?(_ text: some StringProtocol) {
      var copy = String(text)
      guard let name = copy.withUTF8({ Name(bytes: UnsafeRawBufferPointer($0)) }) else { return nil }
      self = name
    }

    /// The same of a text's bytes.
    init?(bytes: UnsafeRawBufferPointer) {
      guard bytes.count == 40, let third = Self.number(bytes[..<8]), let second = Self.number(bytes[8..<24]),
        let first = Self.number(bytes[24...])
      else { return nil }
      self.init((third, second, first))
    }

    /// Up to sixteen digits, the first one highest.
    private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> UInt64? {
      var number: UInt64 = 0
      for digit in digits {
        switch digit {
        case 48...57: number = number << 4 | UInt64(digit - 48)
        case 97...102: number = number << 4 | UInt64(digit - 87)
        default: return nil
        }
      }
      return number
    }

    /// The name that a SHA-1 stands for.
    init?(hash: UnsafeRawBufferPointer) {
      guard hash.count == 20 else { return nil }
      var values: (UInt64, UInt64, UInt64) = (0, 0, 0)
      for byte in hash {
        values.0 = values.0 << 8 | values.1 >> 56
        values.1 = values.1 << 8 | values.2 >> 56
        values.2 = values.2 << 8 | UInt64(byte)
      }
      self.init(values)
    }

    /// Forty digits.
    package var text: String {
      String(
        hexadecimal:
          withUnsafeBytes(of: third.bigEndian, Array.init) + withUnsafeBytes(of: second.bigEndian, Array.init)
          + withUnsafeBytes(of: first.bigEndian, Array.init))
    }

    private init(_ values: (UInt64, UInt64, UInt64)) {
      (third, second, first) = (UInt32(truncatingIfNeeded: values.0), values.1, values.2)
    }
  }

  private var byteCounts: [Name: Int64] = [:]
  /// Where a payload's name is that of a link, a pipe, a directory: what no device stores, and nobody opens.
  private var irregular: Set<Name> = []
  /// Of all payloads together.
  package private(set) var byteCount: Int64 = 0
  /// The paths of payloads with other names than a device gives them, relative to the backup's directory.
  private(set) var otherPaths: [Name: String] = [:]
  /// Files with other names of payloads, until all files are known.
  private var candidates: [Name: [(path: String, byteCount: Int64)]] = [:]
  /// Files with another name of a payload that are not read.
  private var unread: Set<String> = []

  /// Creates a list of no payload.
  package init() {}

  /// How many payloads are stored.
  public var count: Int { byteCounts.count }

  /// The stored size of a payload; `nil` if it isn't there.
  package func byteCount(of fileIdentifier: some StringProtocol) -> Int64? {
    Name(fileIdentifier).flatMap { byteCounts[$0] }
  }

  /// The names of payloads that are stored with such a size, in order.
  package func fileIdentifiers(whereByteCount matches: (Int64) -> Bool = { _ in true }) -> [String] {
    byteCounts.filter { matches($0.value) }.map { $0.key.text }.sorted()
  }

  /// Whether something that is not a regular file has a payload's name.
  package func isIrregular(_ fileIdentifier: some StringProtocol) -> Bool {
    Name(fileIdentifier).map(irregular.contains) ?? false
  }

  func contains(_ name: Name) -> Bool { byteCounts[name] != nil }

  /// The path of a payload with another name than a device gives it; `nil` for every other payload.
  package func otherPath(of fileIdentifier: some StringProtocol) -> String? {
    otherPaths.isEmpty ? nil : Name(fileIdentifier).flatMap { otherPaths[$0] }
  }

  /// Whether a file has another name of a payload and is not read.
  package func isUnread(_ path: String) -> Bool { unread.contains(path) }

  /// The path at which a payload is stored, or would be.
  func path(of fileIdentifier: String, in layout: BackupLayout) -> String {
    otherPath(of: fileIdentifier) ?? layout.storedPath(of: fileIdentifier)
  }

  /// The finding about other names; `nil` if every payload has its own.
  package var finding: ArchiveFinding? {
    guard let first = otherPaths.values.min() ?? unread.min() else { return nil }
    return .payloadsRenamed(count: otherPaths.count, unread: unread.count, first: first)
  }

  var notes: [ArchiveNote] { finding.map { [.finding($0)] } ?? [] }

  /// Adds a regular file with another name of a payload.
  mutating func addCandidate(_ path: String, for fileIdentifier: String, byteCount: Int64) {
    guard let name = Name(fileIdentifier) else { return }
    candidates[name, default: []].append((path, byteCount))
  }

  /// Chooses the file of each payload after all files are known. A payload's own name wins, even if it is not a file. If
  /// several files have other names of a payload, none is read, because nothing shows which one is right.
  mutating func settle() {
    for (name, files) in candidates {
      if files.count == 1, byteCounts[name] == nil, !irregular.contains(name) {
        byteCounts[name] = files[0].byteCount
        byteCount += files[0].byteCount
        otherPaths[name] = files[0].path
      } else {
        unread.formUnion(files.map(\.path))
      }
    }
    candidates = [:]
  }

  /// Whether both store the same payloads with the same sizes, under whatever names.
  public static func == (left: Self, right: Self) -> Bool {
    left.byteCounts == right.byteCounts && left.irregular == right.irregular
  }

  mutating func add(_ fileIdentifier: some StringProtocol, byteCount: Int64) {
    guard let name = Name(fileIdentifier), byteCounts.updateValue(byteCount, forKey: name) == nil else { return }
    self.byteCount += byteCount
  }

  mutating func addIrregular(_ fileIdentifier: some StringProtocol) {
    if let name = Name(fileIdentifier) { irregular.insert(name) }
  }
}

/// The files of a backup that this module reads, as they are stored: encrypted ones still encrypted.
package struct StoredParts: Sendable {
  private var small: [StoredPart: [UInt8]] = [:]
  private var large: [StoredPart: StoredBytes] = [:]
  /// What is there and was not read.
  package var unreadable: [UnreadablePropertyList] = []
  /// Why there is a seal that was not read.
  package var sealFault: KeyhaulError?
  /// The log and the journal beside `Manifest.db` that were not read, each with the reason.
  package var unreadJournals: [StoredPart: (byteCount: Int64, reason: String)] = [:]
  /// The pages of a log or a journal that stand for those of `Manifest.db`, and the file that has them.
  var replacedPages: (pages: ReplacedPages, from: StoredPart)?
  /// Whether the keychain's file lies under another name than a device gives it.
  package var isKeychainRenamed = false

  package subscript(part: StoredPart) -> [UInt8]? {
    get { small[part] }
    set { small[part] = newValue }
  }
  /// A part that may be larger than memory.
  package subscript(large part: StoredPart) -> StoredBytes? {
    get { large[part] }
    set { large[part] = newValue }
  }

  package var database: StoredBytes? { large[.database] }

  package func contains(_ part: StoredPart) -> Bool { small[part] != nil || large[part] != nil }

  /// What the list of files says that the backup is; `nil` if it has none.
  package var layout: BackupLayout? { BackupLayout.allCases.first { contains($0.listPart) } }

  /// Forgets what belongs to another layout: a device that was updated may have left its old list behind.
  package func only(_ layout: BackupLayout) -> StoredParts {
    var parts = self
    for other in BackupLayout.allCases where other != layout {
      for part in [other.listPart, other.keychainPart] { (parts.small[part], parts.large[part]) = (nil, nil) }
    }
    return parts
  }
}
