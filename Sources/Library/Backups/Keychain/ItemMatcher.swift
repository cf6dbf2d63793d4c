import Basics
package import KeychainFormats

/// A filter for items by their names. Without conditions, it matches every item.
///
/// The filter compares names as they appear in reports, so it works for plans and backups. The names of encrypted items
/// are unknown, so only the kind and sometimes the access group can match.
package struct ItemMatcher: Hashable, Sendable {
  /// The kind of item, or `nil` to match any.
  package var kind: ItemKind?
  /// The pattern for the label, or `nil` to match any or none.
  package var label: GlobPattern?
  /// The pattern for the account, or `nil` to match any or none.
  package var account: GlobPattern?
  /// The pattern for the service, or `nil` to match any or none.
  package var service: GlobPattern?
  /// The pattern for the server, or `nil` to match any or none.
  package var server: GlobPattern?
  /// The pattern for the access group, or `nil` to match any or none.
  package var accessGroup: GlobPattern?

  /// Creates a filter. An item must meet all conditions.
  package init(
    kind: ItemKind? = nil, label: GlobPattern? = nil, account: GlobPattern? = nil, service: GlobPattern? = nil,
    server: GlobPattern? = nil, accessGroup: GlobPattern? = nil
  ) {
    self.kind = kind
    self.label = label
    self.account = account
    self.service = service
    self.server = server
    self.accessGroup = accessGroup
  }

  /// Returns whether an item with these names matches. A missing name matches no pattern.
  package func matches(_ identity: ItemDescriptor) -> Bool {
    if let kind, kind != identity.kind { return false }
    // The name is computed only if a pattern needs it.
    func patternMatches(_ pattern: GlobPattern?, _ name: @autoclosure () -> String?) -> Bool {
      pattern.map { $0.matches(name: name()) } ?? true
    }
    return patternMatches(account, identity.account) && patternMatches(service, identity.service)
      && patternMatches(label, identity.label)
      && patternMatches(server, identity.server) && patternMatches(accessGroup, identity.accessGroup)
  }

  /// Returns whether an encrypted item could match if its names were known. Returns `false` if `matches` returns
  /// `true`.
  package func couldMatch(_ identity: ItemDescriptor) -> Bool {
    guard identity.isEncrypted, identity.names.isEmpty, kind == nil || kind == identity.kind, !matches(identity) else {
      return false
    }
    if let group = identity.accessGroup, let accessGroup, !accessGroup.matches(name: group) { return false }
    let patterns: [(GlobPattern?, AttributeCode)] = [
      (label, .label), (account, .account), (service, .service), (server, .server),
    ]
    return patterns.allSatisfy { pattern, code in
      pattern == nil || AttributeTable.definition(of: code, in: identity.kind) != nil
    }
  }

  /// Whether a pattern has a star, so that several names can match.
  package var canMatchSeveral: Bool {
    [label, account, service, server, accessGroup].contains { $0.map { $0.text == nil } ?? false }
  }
}

/// A pattern for an attribute, in which `*` matches any text or none. `\*` matches a star.
package struct GlobPattern: Hashable, Sendable {
  /// The UTF-8 pieces between the stars, a single one if there are none.
  private let pieces: [[UInt8]]
  /// The pattern as it was given, with stars and escapes.
  package let source: String

  /// Creates a pattern from a text. Without a star, it matches only the same bytes.
  package init(_ text: String) {
    source = text
    var pieces: [[UInt8]] = [[]]
    var remaining = Array(text.utf8)[...]
    while let byte = remaining.popFirst() {
      if byte == UInt8(ascii: "*") {
        pieces.append([])
      } else if byte == UInt8(ascii: "\\"), remaining.first == UInt8(ascii: "*") {
        remaining.removeFirst()
        pieces[pieces.count - 1].append(UInt8(ascii: "*"))
      } else {
        pieces[pieces.count - 1].append(byte)
      }
    }
    self.pieces = pieces
  }

  /// The only matching text, or `nil` if the pattern has a star.
  package var text: String? { pieces.count == 1 ? String(decoding: pieces[0], as: UTF8.self) : nil }

  /// Returns whether a string, UTF-8 data, or a decimal number matches. A missing value does not.
  package func matches(_ value: PropertyValue?) -> Bool {
    switch value {
    case .string(let text): matches(Array(text.utf8))
    case .data(let bytes): matches(bytes)
    case .integer(let number): matches(Array(String(number).utf8))
    default: false
    }
  }

  /// Returns whether a name matches. A missing name does not.
  package func matches(name: String?) -> Bool {
    guard var name else { return false }
    return name.withUTF8 { matches($0) }
  }

  /// Matches each piece at its first occurrence, so that the time is linear.
  private func matches(_ bytes: some RandomAccessCollection<UInt8>) -> Bool {
    guard let first = pieces.first, let last = pieces.last, pieces.count > 1 else {
      return pieces.first?.count == bytes.count && pieces.first?.elementsEqual(bytes) == true
    }
    guard bytes.count >= first.count + last.count, bytes.starts(with: first),
      bytes.suffix(last.count).elementsEqual(last)
    else { return false }
    var middle = bytes.dropFirst(first.count).dropLast(last.count)
    for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
      guard let range = middle.firstRange(of: piece) else { return false }
      middle = middle[range.upperBound...]
    }
    return true
  }
}
