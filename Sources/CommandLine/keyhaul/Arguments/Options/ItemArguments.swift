import ArgumentParser
import KeyhaulKit
import Reports

/// The value of `--kind`.
struct ItemKindArgument: Equatable, Sendable, ExpressibleByArgument {
  let kind: ItemKind

  static let names: [(name: String, kind: ItemKind)] = [
    ("generic", .genericPassword), ("internet", .internetPassword), ("certificate", .certificate), ("key", .key),
  ]

  init?(argument: String) {
    guard let match = Self.names.first(where: { $0.name == argument }) else { return nil }
    kind = match.kind
  }

  static var allValueStrings: [String] { names.map(\.name) }
}

/// The value of `--protection`: a word, or the code of a protection class.
struct ProtectionArgument: Equatable, Sendable, ExpressibleByArgument {
  let protection: ProtectionClass

  init?(argument: String) {
    guard let protection = ProtectionClass(named: argument) else { return nil }
    self.protection = protection
  }

  static var allValueStrings: [String] { ProtectionClass.allCases.map(\.word) }
}

/// Converts the names of internet protocols to their codes.
enum ProtocolCode {
  /// Returns the code for a protocol.
  ///
  /// - Throws: `.usage` for a text that is neither a known name nor a four-character code.
  static func code(of text: String, flag: String = "--protocol") throws(CommandError) -> String {
    if let knownProtocol = InternetProtocol(name: text) { return knownProtocol.rawValue }
    guard text.utf8.count == 4, text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
      let similarName = EditDistance.nearest(to: text, among: InternetProtocol.names)
      throw .usage(
        "\(flag) cannot be \"\(text)\"",
        why: "a protocol is a name such as https, imap or ssh, or a code of four characters",
        try: "\(flag) \(similarName ?? "https")")
    }
    return text
  }
}
