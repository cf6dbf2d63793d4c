package import Basics
package import KeychainFormats

/// The columns of each kind's table, derived from the attribute table.
///
/// Source: Apple `SecItemSchema.c`.
package enum ColumnDefinitions {
  /// Returns the definitions that have a column, in column order.
  package static func all(of kind: ItemKind) -> [AttributeDefinition] { columns(of: kind).all }

  /// Returns the columns whose values together must be unique in a table.
  package static func primaryKey(of kind: ItemKind) -> [AttributeDefinition] { columns(of: kind).primaryKey }

  private struct Columns {
    let all: [AttributeDefinition]
    let primaryKey: [AttributeDefinition]

    init(of kind: ItemKind) {
      all = AttributeTable.definitions(of: kind).filter { $0.flags.contains(.column) }
      primaryKey = all.filter { $0.flags.contains(.primaryKey) }
    }
  }

  private static let ofGenericPasswords = Columns(of: .genericPassword)
  private static let ofInternetPasswords = Columns(of: .internetPassword)
  private static let ofCertificates = Columns(of: .certificate)
  private static let ofKeys = Columns(of: .key)

  private static func columns(of kind: ItemKind) -> Columns {
    switch kind {
    case .genericPassword: ofGenericPasswords
    case .internetPassword: ofInternetPasswords
    case .certificate: ofCertificates
    case .key: ofKeys
    }
  }
}

extension AttributeDefinition {
  /// Whether the column stores the attribute's own bytes, not text, a number, a hash or the encrypted item.
  package var storesDataInColumn: Bool {
    guard !flags.contains(.hashedColumn) else { return false }
    return switch kind {
    case .blob, .data, .sha1, .uuid, .primaryKey, .accessControl: true
    case .rowID, .creationDate, .modificationDate, .date, .string, .access, .number, .sync, .tomb, .useTombstone,
      .encryptedData:
      false
    }
  }
}

/// SQLite's conversion of text that is stored in, or compared with, a column of type INTEGER.
///
/// Number attributes may contain text (`ptcl` is "htps"), and SQLite converts text that spells a number to that number:
/// "007" and 7 are the same value in a primary key. A key that is computed outside the database has to match.
/// Source: SQLite, "Datatypes in SQLite", sections 3 and 3.1 (well-formed literals; lossless conversion to INTEGER).
package enum NumericAffinity {
  /// Returns the value that a column of type INTEGER stores for a text.
  package static func applied(toText bytes: [UInt8]) -> ColumnValue {
    guard let literal = numericLiteral(in: bytes) else { return .text(bytes) }
    if let integer = Int64(literal) { return .integer(integer) }
    guard let real = Double(literal) else { return .text(bytes) }
    return applied(toReal: real)
  }

  /// Returns an integer if the real number is whole and an `Int64` represents it exactly, otherwise the number itself.
  package static func applied(toReal real: Double) -> ColumnValue {
    guard let integer = Int64(exactly: real), integer > Int64.min, integer < Int64.max else { return .real(real) }
    return .integer(integer)
  }

  /// Returns `[+-]digits[.digits][e[+-]digits]` without the blanks around it, or `nil` if the text is anything else.
  private static func numericLiteral(in bytes: [UInt8]) -> String? {
    var remaining = ArraySlice(bytes)
    while let first = remaining.first, isBlank(first) { remaining.removeFirst() }
    while let last = remaining.last, isBlank(last) { remaining.removeLast() }
    let literal = remaining
    if let sign = remaining.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { remaining.removeFirst() }
    var mantissaDigits = skipDigits(&remaining)
    if remaining.first == UInt8(ascii: ".") {
      remaining.removeFirst()
      mantissaDigits += skipDigits(&remaining)
    }
    guard mantissaDigits > 0 else { return nil }
    if remaining.first == UInt8(ascii: "e") || remaining.first == UInt8(ascii: "E") {
      remaining.removeFirst()
      if let sign = remaining.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { remaining.removeFirst() }
      guard skipDigits(&remaining) > 0 else { return nil }
    }
    return remaining.isEmpty ? String(decoding: literal, as: UTF8.self) : nil
  }

  private static func skipDigits(_ remaining: inout ArraySlice<UInt8>) -> Int {
    let initialCount = remaining.count
    while let first = remaining.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) {
      remaining.removeFirst()
    }
    return initialCount - remaining.count
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
}
