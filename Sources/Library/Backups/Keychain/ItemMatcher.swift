import Basics
package import KeychainFormats

/// What an item must be called to be meant; a matcher without conditions means every item.
///
/// Compares with the names that a report shows, so that it works on plans as on archives. A sealed item has no names:
/// only its kind can match.
public struct ItemMatcher: Hashable, Sendable {
  /// The kind that is meant; `nil` for any.
  package var kind: ItemKind?
  /// What the label must be; `nil` for anything, also none.
  package var label: ItemPattern?
  /// What the account must be; `nil` for anything, also none.
  package var account: ItemPattern?
  /// What the service must be; `nil` for anything, also none.
  package var service: ItemPattern?
  /// What the server must be; `nil` for anything, also none.
  package var server: ItemPattern?
  /// What the access group must be; `nil` for anything, also none.
  package var accessGroup: ItemPattern?

  /// Creates a matcher; an item is meant where all conditions hold.
  package init(
    kind: ItemKind? = nil, label: ItemPattern? = nil, account: ItemPattern? = nil, service: ItemPattern? = nil,
    server: ItemPattern? = nil, accessGroup: ItemPattern? = nil
  ) {
    self.kind = kind
    self.label = label
    self.account = account
    self.service = service
    self.server = server
    self.accessGroup = accessGroup
  }

  /// Returns whether an item of these names is meant. An item without a name does not meet a condition on it.
  package func matches(_ identity: ItemIdentity) -> Bool {
    if let kind, kind != identity.kind { return false }
    // The name is computed only if a pattern needs it.
    func fits(_ pattern: ItemPattern?, _ name: @autoclosure () -> String?) -> Bool {
      pattern.map { $0.matches(name: name()) } ?? true
    }
    return fits(account, identity.account) && fits(service, identity.service) && fits(label, identity.label)
      && fits(server, identity.server) && fits(accessGroup, identity.accessGroup)
  }

  /// Whether an item may be meant whose names nobody knows: one that does not open, of a kind that can have what is asked
  /// for. `matches` says of such an item only what its kind says.
  package func mayMean(_ identity: ItemIdentity) -> Bool {
    guard identity.isSealed, identity.names.isEmpty, kind == nil || kind == identity.kind, !matches(identity) else {
      return false
    }
    if let group = identity.accessGroup, let accessGroup, !accessGroup.matches(name: group) { return false }
    let asked: [(ItemPattern?, AttributeCode)] = [
      (label, .label), (account, .account), (service, .service), (server, .server),
    ]
    return asked.allSatisfy { pattern, code in
      pattern == nil || AttributeTable.definition(of: code, in: identity.kind) != nil
    }
  }

  /// Whether a star makes it mean more than one name.
  package var canMatchSeveral: Bool {
    [label, account, service, server, accessGroup].contains { $0.map { $0.text == nil } ?? false }
  }
}

/// A text to compare an attribute with, in which `*` stands for any text, also none. `\*` is a star.
package struct ItemPattern: Hashable, Sendable {
  /// What stands between the stars, as UTF-8: one piece where there is none.
  private let pieces: [[UInt8]]
  /// The pattern as it was written.
  package let source: String

  /// Creates a pattern of a text; without a star it is the text itself, byte for byte.
  package init(_ text: String) {
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

  /// The one text that it means; `nil` if a star makes it mean several.
  package var text: String? { pieces.count == 1 ? String(decoding: pieces[0], as: UTF8.self) : nil }

  /// Whether text, data that is text, or a number in decimal is what the pattern says. An absent value is not.
  package func matches(_ value: PropertyValue?) -> Bool {
    switch value {
    case .string(let text): matches(Array(text.utf8))
    case .data(let bytes): matches(bytes)
    case .integer(let number): matches(Array(String(number).utf8))
    default: false
    }
  }

  /// Whether a name is what the pattern says. An absent one is not.
  package func matches(name: String?) -> Bool {
    guard var name else { return false }
    return name.withUTF8 { matches($0) }
  }

  /// Each piece is taken where it comes first, so that the time grows with the length alone.
  private func matches(_ bytes: some RandomAccessCollection<UInt8>) -> Bool {
    guard let first = pieces.first, let last = pieces.last, pieces.count > 1 else {
      return pieces.first?.count == bytes.count && pieces.first?.elementsEqual(bytes) == true
    }
    guard bytes.count >= first.count + last.count, bytes.starts(with: first),
      bytes.suffix(last.count).elementsEqual(last)
    else { return false }
    var rest = bytes.dropFirst(first.count).dropLast(last.count)
    for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
      guard let found = rest.firstRange(of: piece) else { return false }
      rest = rest[found.upperBound...]
    }
    return true
  }
}
