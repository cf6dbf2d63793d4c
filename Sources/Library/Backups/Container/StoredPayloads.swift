import Basics
import KeychainFormats

/// The stored payloads of a backup, by stored name, with their stored sizes.
///
/// A payload's usual name is the path that the backup's layout gives it, in lower case. Some tools give it an unusual
/// name: they change the case, or use the path of the other layout.
public struct StoredPayloads: Sendable, Equatable {
  /// A payload's name as 20 bytes inline, without a heap allocation, because a large backup has half a million names.
  package struct Name: Hashable, Sendable {
    // The short number is last. Before a longer one, it would be padded to 8 bytes.
    /// The last 8 bytes.
    let low: UInt64
    let middle: UInt64
    /// The first 4 bytes.
    let high: UInt32

    /// Creates a name from 40 lower-case hexadecimal digits, otherwise returns `nil`.
    package init?(_ text: some StringProtocol) {
      var copy = String(text)
      guard let name = copy.withUTF8({ Name(bytes: UnsafeRawBufferPointer($0)) }) else { return nil }
      self = name
    }

    /// Creates a name from the digits' bytes.
    init?(bytes: UnsafeRawBufferPointer) {
      guard bytes.count == 40, let high = Self.parse(bytes[..<8]), let middle = Self.parse(bytes[8..<24]),
        let low = Self.parse(bytes[24...])
      else { return nil }
      self.init(high: high, middle: middle, low: low)
    }

    /// Parses up to 16 hexadecimal digits, or returns `nil` if another character is among them.
    private static func parse(_ digits: Slice<UnsafeRawBufferPointer>) -> UInt64? {
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

    /// Creates the name of a SHA-1 digest.
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

    /// The 40 digits.
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

  private var byteCounts: [Name: Int64] = [:]
  /// The usual names that belong to a link, pipe or directory. Devices never write these, so they are not opened.
  private var irregular: Set<Name> = []
  /// The total size of all payloads.
  package private(set) var byteCount: Int64 = 0
  /// The paths of payloads with unusual names, relative to the backup's directory.
  private(set) var unusualPaths: [Name: String] = [:]
  /// The candidates for payloads with unusual names, until all files are known.
  private var candidates: [Name: [(path: String, byteCount: Int64)]] = [:]
  /// The paths of candidates that are not used.
  private var unusedCandidates: Set<String> = []

  /// Creates an empty list.
  package init() {}

  /// The number of stored payloads.
  public var count: Int { byteCounts.count }

  /// Returns the stored size of a payload, or `nil` if it is missing.
  package func byteCount(of fileIdentifier: some StringProtocol) -> Int64? {
    Name(fileIdentifier).flatMap { byteCounts[$0] }
  }

  /// Returns the sorted names of the payloads whose stored size satisfies `matches`; by default, of all payloads.
  package func fileIdentifiers(whereByteCount matches: (Int64) -> Bool = { _ in true }) -> [String] {
    byteCounts.filter { matches($0.value) }.map { $0.key.text }.sorted()
  }

  /// Returns whether a link, pipe or directory has the payload's usual name.
  package func isIrregular(_ fileIdentifier: some StringProtocol) -> Bool {
    Name(fileIdentifier).map(irregular.contains) ?? false
  }

  func contains(_ name: Name) -> Bool { byteCounts[name] != nil }

  /// Returns the path of a payload with an unusual name, otherwise `nil`.
  package func unusualPath(of fileIdentifier: some StringProtocol) -> String? {
    unusualPaths.isEmpty ? nil : Name(fileIdentifier).flatMap { unusualPaths[$0] }
  }

  /// Returns whether a file is an unused candidate for a payload.
  package func isUnusedCandidate(_ path: String) -> Bool { unusedCandidates.contains(path) }

  /// Returns the path of a payload, stored or not.
  func path(of fileIdentifier: String, in layout: BackupLayout) -> String {
    unusualPath(of: fileIdentifier) ?? layout.storedPath(of: fileIdentifier)
  }

  /// The finding about unusual names, or `nil` if there are none.
  package var finding: BackupFinding? {
    guard let first = unusualPaths.values.min() ?? unusedCandidates.min() else { return nil }
    return .payloadsRenamed(count: unusualPaths.count, unread: unusedCandidates.count, first: first)
  }

  var anomalies: [BackupAnomaly] { finding.map { [.finding($0)] } ?? [] }

  /// Adds a regular file as a candidate for a payload.
  mutating func addCandidate(_ path: String, for fileIdentifier: String, byteCount: Int64) {
    guard let name = Name(fileIdentifier) else { return }
    candidates[name, default: []].append((path, byteCount))
  }

  /// Chooses the file of each payload when all files are known. A payload's usual name has precedence, even if a link,
  /// pipe or directory has it. If there are several candidates, none is used, because nothing shows which is correct.
  mutating func resolveCandidates() {
    for (name, files) in candidates {
      if files.count == 1, byteCounts[name] == nil, !irregular.contains(name) {
        byteCounts[name] = files[0].byteCount
        byteCount += files[0].byteCount
        unusualPaths[name] = files[0].path
      } else {
        unusedCandidates.formUnion(files.map(\.path))
      }
    }
    candidates = [:]
  }

  /// Returns whether both contain the same payloads with the same sizes, under any names.
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
