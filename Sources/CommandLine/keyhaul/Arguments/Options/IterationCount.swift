import KeyhaulKit

/// A number of PBKDF2 iterations.
struct IterationCount: Equatable, Sendable {
  let value: Int

  /// Creates a count from a number, with or without commas; `nil` if the text is 0 or not such a number.
  init?(argument: String) {
    let digits = argument.replacing(",", with: "")
    guard digits.allSatisfy({ $0.isASCII && $0.isNumber }), let value = UInt32(digits), value > 0 else { return nil }
    self.value = Int(value)
  }

  struct OutOfRange: Error, CustomStringConvertible {
    let maximum: Int
    var description: String { "it must be a number from 1 to \(HumanReadable.grouped(maximum))" }
  }

  /// Parses the maximum for existing keybags. It may be as large as a count that a keybag can store.
  @Sendable static func parse(_ argument: String) throws -> IterationCount {
    try parse(argument, atMost: Int(UInt32.max))
  }

  /// Parses a count for a new keybag, up to the largest count that all readers accept.
  @Sendable static func parseWritten(_ argument: String) throws -> IterationCount {
    try parse(argument, atMost: BackupKeybag.maximumRounds)
  }

  /// Parses a count.
  ///
  /// - Throws: `OutOfRange` for anything but a number from 1 to the maximum.
  private static func parse(_ argument: String, atMost maximum: Int) throws -> IterationCount {
    guard let count = IterationCount(argument: argument), count.value <= maximum else {
      throw OutOfRange(maximum: maximum)
    }
    return count
  }
}
