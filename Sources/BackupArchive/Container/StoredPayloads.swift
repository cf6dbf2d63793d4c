/// The payloads that a backup stores, by the names under which they are stored, with their sizes as stored.
public struct StoredPayloads: Sendable, Equatable {
  /// Twenty bytes of SHA-1 without a heap allocation: a large backup has half a million of them.
  private struct Name: Hashable {
    let first: UInt64
    let second: UInt64
    let third: UInt32

    /// - Returns: `nil` unless there are forty lower-case hexadecimal digits.
    init?(_ text: some StringProtocol) {
      guard isFileIdentifier(text) else { return nil }
      var values: [UInt64] = [0, 0, 0]
      for (index, digit) in text.utf8.enumerated() {
        values[index / 16] = values[index / 16] << 4 | UInt64(digit < 58 ? digit - 48 : digit - 87)
      }
      (first, second, third) = (values[0], values[1], UInt32(truncatingIfNeeded: values[2]))
    }
  }

  private var byteCounts: [Name: Int64] = [:]
  /// Of all payloads together.
  public private(set) var byteCount: Int64 = 0

  public init() {}

  public var count: Int { byteCounts.count }

  /// The stored size of a payload; `nil` where it isn't there.
  public func byteCount(of fileIdentifier: some StringProtocol) -> Int64? {
    Name(fileIdentifier).flatMap { byteCounts[$0] }
  }

  mutating func add(_ fileIdentifier: some StringProtocol, byteCount: Int64) {
    guard let name = Name(fileIdentifier), byteCounts.updateValue(byteCount, forKey: name) == nil else { return }
    self.byteCount += byteCount
  }
}
