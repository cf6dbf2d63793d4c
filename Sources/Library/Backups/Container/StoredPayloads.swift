import Basics
import KeychainFormats

/// The stored payloads of a backup, by file identifier, with their stored sizes.
///
/// A payload's usual path is the lower-case path that the backup's layout gives it. Some tools store a payload at an
/// unusual path: in capitals, or at the path of the other layout.
public struct StoredPayloads: Sendable, Equatable {
  /// A file identifier as 20 bytes, stored inline. A large backup has half a million identifiers, and a string would
  /// need a heap allocation for each.
  package struct Identifier: Hashable, Sendable {
    // `high` is last because Swift would add 4 bytes of padding between it and a longer number.
    /// The last 8 bytes.
    let low: UInt64
    /// The 8 bytes between `high` and `low`.
    let middle: UInt64
    /// The first 4 bytes.
    let high: UInt32

    /// Creates an identifier from 40 hexadecimal digits in lower case, or returns `nil` if the text is anything else.
    package init?(_ text: some StringProtocol) {
      var copy = String(text)
      guard let identifier = copy.withUTF8({ Identifier(digits: UnsafeRawBufferPointer($0)) }) else { return nil }
      self = identifier
    }

    /// Creates an identifier from 40 hexadecimal digits in ASCII, or returns `nil` if the bytes are anything else.
    init?(digits: UnsafeRawBufferPointer) {
      guard digits.count == 40, let high = Self.number(digits[..<8]), let middle = Self.number(digits[8..<24]),
        let low = Self.number(digits[24...])
      else { return nil }
      self.init(high: high, middle: middle, low: low)
    }

    /// Returns the number that up to 16 hexadecimal digits represent, or `nil` if a byte is not a lower-case digit.
    private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> UInt64? {
      var number: UInt64 = 0
      for digit in digits {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(digit - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
        default: return nil
        }
      }
      return number
    }

    /// Creates an identifier from a SHA-1 digest, or returns `nil` if it does not have 20 bytes.
    init?(hash: UnsafeRawBufferPointer) {
      guard hash.count == 20 else { return nil }
      var (high, middle, low): (UInt64, UInt64, UInt64) = (0, 0, 0)
      for byte in hash {
        high = high << 8 | middle >> 56
        middle = middle << 8 | low >> 56
        low = low << 8 | UInt64(byte)
      }
      self.init(high: high, middle: middle, low: low)
    }

    /// The identifier as 40 hexadecimal digits in lower case.
    package var text: String {
      String(
        hexadecimal:
          withUnsafeBytes(of: high.bigEndian, Array.init) + withUnsafeBytes(of: middle.bigEndian, Array.init)
          + withUnsafeBytes(of: low.bigEndian, Array.init))
    }

    private init(high: UInt64, middle: UInt64, low: UInt64) {
      (self.high, self.middle, self.low) = (UInt32(truncatingIfNeeded: high), middle, low)
    }
  }

  /// The stored sizes by identifier.
  private var byteCounts: [Identifier: Int64] = [:]
  /// The payloads whose usual path is a link, pipe or directory. No device writes these, so Keyhaul does not open them.
  private var irregular: Set<Identifier> = []
  /// The total size of all payloads.
  package private(set) var byteCount: Int64 = 0
  /// The paths of the payloads at unusual paths, relative to the backup's directory.
  private(set) var unusualPaths: [Identifier: String] = [:]
  /// The files at unusual paths by payload. `resolveCandidates()` decides which of them are payloads.
  private var candidates: [Identifier: [(path: String, byteCount: Int64)]] = [:]
  /// The paths of the candidates that were not chosen.
  private var unusedCandidates: Set<String> = []

  /// Creates an empty list.
  package init() {}

  /// The number of stored payloads.
  public var count: Int { byteCounts.count }

  /// Returns the stored size of a payload, or `nil` if it is missing.
  package func byteCount(of fileIdentifier: some StringProtocol) -> Int64? {
    Identifier(fileIdentifier).flatMap { byteCounts[$0] }
  }

  /// Returns the sorted identifiers of the payloads whose stored size satisfies a condition; by default, of all.
  package func fileIdentifiers(whereByteCount matches: (Int64) -> Bool = { _ in true }) -> [String] {
    byteCounts.filter { matches($0.value) }.map { $0.key.text }.sorted()
  }

  /// Returns whether a payload's usual path is a link, pipe or directory.
  package func isIrregular(_ fileIdentifier: some StringProtocol) -> Bool {
    Identifier(fileIdentifier).map(irregular.contains) ?? false
  }

  /// Returns whether a payload is stored as a regular file.
  func contains(_ identifier: Identifier) -> Bool { byteCounts[identifier] != nil }

  /// Returns the path of a payload that is stored at an unusual path, or `nil` if it is not.
  package func unusualPath(of fileIdentifier: some StringProtocol) -> String? {
    unusualPaths.isEmpty ? nil : Identifier(fileIdentifier).flatMap { unusualPaths[$0] }
  }

  /// Returns whether the file at an unusual path was a candidate for a payload, but was not chosen.
  package func isUnusedCandidate(_ path: String) -> Bool { unusedCandidates.contains(path) }

  /// Returns the path of a stored payload, or the usual path of one that is not stored.
  func path(of fileIdentifier: String, in layout: BackupLayout) -> String {
    unusualPath(of: fileIdentifier) ?? layout.storedPath(of: fileIdentifier)
  }

  /// The finding that files are at unusual paths, or `nil` if there are none.
  package var finding: BackupFinding? {
    guard let first = unusualPaths.values.min() ?? unusedCandidates.min() else { return nil }
    return .payloadsRenamed(count: unusualPaths.count, unread: unusedCandidates.count, first: first)
  }

  /// The finding as a list of anomalies, which is empty if there is none.
  var anomalies: [ToleratedAnomaly] { finding.map { [.finding($0)] } ?? [] }

  /// Adds a regular file at an unusual path as a candidate for a payload.
  mutating func addCandidate(_ path: String, for fileIdentifier: String, byteCount: Int64) {
    guard let identifier = Identifier(fileIdentifier) else { return }
    candidates[identifier, default: []].append((path, byteCount))
  }

  /// Uses the candidates as payloads. Called after all files were added.
  ///
  /// A candidate is not used if a file, link, pipe or directory is at the payload's usual path. It is also not used if
  /// the payload has several candidates, because nothing shows which is correct.
  mutating func resolveCandidates() {
    for (identifier, files) in candidates {
      if files.count == 1, byteCounts[identifier] == nil, !irregular.contains(identifier) {
        byteCounts[identifier] = files[0].byteCount
        byteCount += files[0].byteCount
        unusualPaths[identifier] = files[0].path
      } else {
        unusedCandidates.formUnion(files.map(\.path))
      }
    }
    candidates = [:]
  }

  /// Returns whether both backups have the same payloads with the same sizes. The paths may differ.
  public static func == (left: Self, right: Self) -> Bool {
    left.byteCounts == right.byteCounts && left.irregular == right.irregular
  }

  /// Adds a regular file at a payload's usual path.
  mutating func add(_ fileIdentifier: some StringProtocol, byteCount: Int64) {
    guard let identifier = Identifier(fileIdentifier), byteCounts.updateValue(byteCount, forKey: identifier) == nil
    else { return }
    self.byteCount += byteCount
  }

  /// Adds a link, pipe or directory at a payload's usual path.
  mutating func addIrregular(_ fileIdentifier: some StringProtocol) {
    if let identifier = Identifier(fileIdentifier) { irregular.insert(identifier) }
  }
}
