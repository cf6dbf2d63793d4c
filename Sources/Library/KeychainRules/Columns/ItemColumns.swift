package import Basics
import KeychainCrypto
package import KeychainFormats

/// What an item's attributes look like in the columns of its table.
///
/// Columns serve search and uniqueness only: most hold SHA-1 of the value, and the values come from the sealed blob.
/// SQLite takes every NULL for a value of its own, so an absent attribute of a primary key is never NULL.
/// Source: Apple `SecDbItem.c` (`SecDbItemCopyValueForDb`…), `SecItemSchema.c`.
package enum ItemColumns {
  /// The value of every column but `rowid`, in column order; `data`, which is the sealed item's, is NULL.
  package static func values(of item: KeychainItem) throws(KeychainRuleError) -> [ColumnValue] {
    let definitions = ColumnDefinitions.all(of: item.kind)
    var values: [ColumnValue] = []
    values.reserveCapacity(definitions.count)
    for definition in definitions where definition.kind != .rowID {
      values.append(
        definition.kind == .encryptedData ? .null : try value(item.attributes[definition.code], for: definition))
    }
    return values
  }

  /// The columns of the primary key, in column order.
  package static func primaryKeyValues(of item: KeychainItem) throws(KeychainRuleError) -> [ColumnValue] {
    var values: [ColumnValue] = []
    for definition in ColumnDefinitions.primaryKey(of: item.kind) {
      values.append(try value(item.attributes[definition.code], for: definition))
    }
    return values
  }

  /// One attribute's column, also the operand with which a query looks for it.
  ///
  /// - Parameter isHashed: Whether a column that this schema hashes holds the hash; `false` gives the value itself, which
  ///   some columns of schema 5 hold.
  /// - Throws: `.parameter` where the attribute cannot have a value of this type.
  package static func value(
    _ value: PropertyValue?, for definition: AttributeDefinition, isHashed: Bool = true
  ) throws(KeychainRuleError) -> ColumnValue {
    guard let value, value != .null else { return try valueOfAbsent(definition, isHashed: isHashed) }
    let converted = try convert(value, for: definition)
    if isHashed, definition.flags.contains(.hashedColumn) { return .blob(try sha1(bytes(of: converted))) }
    switch definition.kind {
    case .blob, .data, .encryptedData, .sha1, .uuid, .primaryKey, .accessControl:
      return .data(bytes(of: converted))
    case .string, .access:
      return .text(bytes(of: converted))
    case .creationDate, .modificationDate, .date:
      guard let seconds = converted.dateValue?.secondsSinceReferenceDate, seconds.isFinite else {
        throw KeychainRuleError(.parameter, "\(definition.code.rawValue) is a date that is out of range")
      }
      return .real(seconds == 0 ? 0 : seconds)
    case .number, .sync, .tomb, .useTombstone, .rowID:
      guard let number = converted.integerValue else { return NumericAffinity.applied(toText: bytes(of: converted)) }
      return .integer(number)
    }
  }

  /// SHA-1 of the default where the column is hashed, an empty value where it may not be NULL.
  private static func valueOfAbsent(
    _ definition: AttributeDefinition, isHashed: Bool
  ) throws(KeychainRuleError) -> ColumnValue {
    let flags = isHashed ? definition.flags : definition.flags.subtracting(.hashedColumn)
    guard !flags.isDisjoint(with: [.primaryKey, .notNull, .defaultsToZero]) else { return .null }
    switch definition.kind {
    case .number, .sync, .tomb, .useTombstone, .rowID:
      return flags.contains(.hashedColumn) ? .blob(try hashOfZero.get()) : .integer(0)
    case .creationDate, .modificationDate, .date: return .real(0)
    case .string, .access: return .text([])
    case .blob, .data, .encryptedData, .sha1, .uuid, .primaryKey, .accessControl:
      return .data(flags.contains(.hashedColumn) ? try hashOfNothing.get() : [])
    }
  }

  // What most items' columns hold: computed once.
  private static let hashOfZero = Result { () throws(KeychainRuleError) in try sha1(littleEndian(0)) }
  private static let hashOfNothing = Result { () throws(KeychainRuleError) in try sha1([]) }

  /// The value as its attribute takes it in.
  package static func convert(
    _ value: PropertyValue, for definition: AttributeDefinition
  ) throws(KeychainRuleError) -> PropertyValue {
    do {
      return try AttributeConversion.convert(value, for: definition)
    } catch {
      throw KeychainRuleError(.parameter, error.reason)
    }
  }

  /// The bytes of a converted value that is text, data or a number.
  private static func bytes(of value: PropertyValue) -> [UInt8] {
    switch value {
    case .string(let string): Array(string.utf8)
    case .data(let bytes): bytes
    case .integer(let number): littleEndian(number)
    default: []
    }
  }

  /// Numbers are hashed as four bytes; Apple's conversion cuts larger ones off.
  private static func littleEndian(_ number: Int64) -> [UInt8] {
    let low = UInt32(truncatingIfNeeded: number)
    return (0..<4).map { UInt8(truncatingIfNeeded: low >> (8 * UInt32($0))) }
  }

  private static func sha1(_ bytes: [UInt8]) throws(KeychainRuleError) -> [UInt8] {
    do { return try Digest.sha1(bytes) } catch { throw KeychainRuleError(error) }
  }
}
