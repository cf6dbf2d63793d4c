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
  public private(set) var byteCount: Int64 = 0

  /// Creates a list of no payload.
  public init() {}

  /// How many payloads are stored.
  public var count: Int { byteCounts.count }

  /// The stored size of a payload; `nil` where it isn't there.
  public func byteCount(of fileIdentifier: some StringProtocol) -> Int64? {
    Name(fileIdentifier).flatMap { byteCounts[$0] }
  }

  /// The names of payloads that are stored with such a size, in order.
  public func fileIdentifiers(whereByteCount matches: (Int64) -> Bool = { _ in true }) -> [String] {
    byteCounts.filter { matches($0.value) }.map { $0.key.text }.sorted()
  }

  /// Whether something that is not a regular file has a payload's name.
  public func isIrregular(_ fileIdentifier: some StringProtocol) -> Bool {
    Name(fileIdentifier).map(irregular.contains) ?? false
  }

  func contains(_ name: Name) -> Bool { byteCounts[name] != nil }

  mutating func add(_ fileIdentifier: some StringProtocol, byteCount: Int64) {
    guard let name = Name(fileIdentifier), byteCounts.updateValue(byteCount, forKey: name) == nil else { return }
    self.byteCount += byteCount
  }

  mutating func addIrregular(_ fileIdentifier: some StringProtocol) {
    if let name = Name(fileIdentifier) { irregular.insert(name) }
  }
}
