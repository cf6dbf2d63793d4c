import Basics
public import KeychainFormats

/// A text to compare an attribute with, in which `*` stands for any text, also none. `\*` is a star.
public struct ItemPattern: Hashable, Sendable {
  /// What stands between the stars, as UTF-8: one piece where there is none.
  private let pieces: [[UInt8]]
  /// The pattern as it was written.
  public let source: String

  /// Creates a pattern of a text; without a star it is the text itself, byte for byte.
  public init(_ text: String) {
    source = text
    var pieces: [[UInt8]] = [[]]
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "*") {
        pieces.append([])
      } else if byte == UInt8(ascii: "\\"), rest.first == UInt8(ascii: "*") {
        rest.removeFirst()
        pieces[pieces.count - 1].append(UInt8(ascii: "*"))
      } else {
        pieces[pieces.count - 1].append(byte)
      }
    }
    self.pieces = pieces
  }

  /// The one text that it means; `nil` where a star makes it mean several.
  public var text: String? { pieces.count == 1 ? String(decoding: pieces[0], as: UTF8.self) : nil }

  /// Whether text, data that is text, or a number in decimal is what the pattern says. An absent value is not.
  public func matches(_ value: PropertyValue?) -> Bool {
    switch value {
    case .string(let text): matches(Array(text.utf8))
    case .data(let bytes): matches(bytes)
    case .integer(let number): matches(Array(String(number).utf8))
    default: false
    }
  }

  /// Whether a name is what the pattern says. An absent one is not.
  public func matches(name: String?) -> Bool { name.map { matches(Array($0.utf8)) } ?? false }

  /// Each piece is taken where it comes first, so that the time grows with the length alone.
  private func matches(_ bytes: [UInt8]) -> Bool {
    guard let first = pieces.first, let last = pieces.last, pieces.count > 1 else { return pieces.first == bytes }
    guard bytes.count >= first.count + last.count, bytes.starts(with: first),
      bytes.suffix(last.count).elementsEqual(last)
    else { return false }
    var rest = bytes[first.count..<(bytes.count - last.count)]
    for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
      guard let found = rest.firstRange(of: piece) else { return false }
      rest = rest[found.upperBound...]
    }
    return true
  }
}
