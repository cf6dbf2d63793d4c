/// The bytes of a persistent reference, held in place where they are as many as one has: there is one for every item.
enum HeldReference: Sendable {
  case none
  /// Up to 20 bytes, the first ones lowest.
  case short(UInt64, UInt64, UInt32, count: UInt8)
  case long([UInt8])

  private static let longestShort = 20

  init(_ bytes: [UInt8]?) {
    guard let bytes else {
      self = .none
      return
    }
    guard bytes.count <= Self.longestShort else {
      self = .long(bytes)
      return
    }
    func word(_ range: Range<Int>) -> UInt64 {
      range.reversed().reduce(0) { $0 << 8 | ($1 < bytes.count ? UInt64(bytes[$1]) : 0) }
    }
    self = .short(word(0..<8), word(8..<16), UInt32(truncatingIfNeeded: word(16..<20)), count: UInt8(bytes.count))
  }

  var bytes: [UInt8]? {
    switch self {
    case .none: return nil
    case .long(let bytes): return bytes
    case .short(let first, let second, let third, let count):
      let words = [first, second, UInt64(third)]
      return (0..<Int(count)).map { UInt8(truncatingIfNeeded: words[$0 / 8] >> (8 * ($0 % 8))) }
    }
  }
}
