package import Basics
import KeychainCrypto
package import KeychainFormats

/// The column values that represent an item's attributes in its table.
///
/// Columns serve search and uniqueness only: most store the SHA-1 of the value, and the values come from the encrypted
/// blob. SQLite treats every NULL as distinct, so an absent attribute of a primary key is never NULL.
/// Source: Apple `SecDbItem.c` (`SecDbItemCopyValueForDb`…), `SecItemSchema.c`.
package enum ItemColumns {
  /// Returns the value of every column except `rowid`, in column order; `data`, which stores the encrypted item, is
  /// NULL.
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

  /// Returns the columns of the primary key, in column order.
  package static func primaryKeyValues(of item: KeychainItem) throws(KeychainRuleError) -> [ColumnValue] {
    var values: [ColumnValue] = []
    for definition in ColumnDefinitions.primaryKey(of: item.kind) {
      values.append(try value(item.attributes[definition.code], for: definition))
    }
    return values
  }

  /// Returns the value of one attribute's column, which is also the operand of a query for it.
  ///
  /// - Parameters:
  ///   - value: The attribute's value, or `nil` if the item does not have the attribute.
  ///   - definition: The attribute's definition.
  ///   - isHashed: Whether to return the hash for a column that the current schema hashes; `false` returns the value
  ///     itself, which some columns of schema 5 store.
  /// - Throws: `.parameter` if the attribute cannot have a value of this type.
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

  /// Returns the SHA-1 of the default if the column is hashed, or an empty value if the column may not be NULL.
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

  // Computed once, because most items need them.
  private static let hashOfZero = Result { () throws(KeychainRuleError) in try sha1(littleEndian(0)) }
  private static let hashOfNothing = Result { () throws(KeychainRuleError) in try sha1([]) }

  /// Returns the value converted for its attribute.
  ///
  /// - Throws: `.parameter` if the attribute cannot have a value of this type.
  package static func convert(
    _ value: PropertyValue, for definition: AttributeDefinition
  ) throws(KeychainRuleError) -> PropertyValue {
    do {
      return try AttributeConversion.convert(value, for: definition)
    } catch {
      throw KeychainRuleError(.parameter, error.reason)
    }
  }

  /// Returns the bytes of a converted value, which is text, data or a number.
  private static func bytes(of value: PropertyValue) -> [UInt8] {
    switch value {
    case .string(let string): Array(string.utf8)
    case .data(let bytes): bytes
    case .integer(let number): littleEndian(number)
    default: []
    }
  }

  /// Returns the four bytes that are hashed for a number; Apple's conversion truncates larger numbers.
  private static func littleEndian(_ number: Int64) -> [UInt8] {
    let low = UInt32(truncatingIfNeeded: number)
    return (0..<4).map { UInt8(truncatingIfNeeded: low >> (8 * UInt32($0))) }
  }

  private static func sha1(_ bytes: [UInt8]) throws(KeychainRuleError) -> [UInt8] {
    do { return try Digest.sha1(bytes) } catch { throw KeychainRuleError(error) }
  }
}
