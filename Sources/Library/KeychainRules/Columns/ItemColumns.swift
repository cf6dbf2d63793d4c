package import Basics
import KeychainCrypto
package import KeychainFormats

/// The column values that represent an item's attributes in its table.
///
/// The database uses columns only for searches and to keep primary keys unique, so most of them store the SHA-1 of a
/// value. An item's attributes are read from its encrypted blob. SQLite treats every NULL as distinct, so the columns of
/// a primary key are never NULL.
///
/// Source: Apple `SecDbItem.c` (`SecDbItemCopyValueForDb`…), `SecItemSchema.c`.
package enum ItemColumns {
  /// Returns the value of every column except `rowid`, in column order. The column `data`, which stores the encrypted
  /// item, is NULL.
  package static func values(of item: KeychainItem) throws(KeychainRuleError) -> [ColumnValue] {
    let definitions = ColumnDefinitions.all(of: item.kind)
    var values: [ColumnValue] = []
    values.reserveCapacity(definitions.count)
    for definition in definitions where definition.kind != .rowID {
      let isEncryptedItem = definition.kind == .encryptedData
      values.append(isEncryptedItem ? .null : try value(item.attributes[definition.code], for: definition))
    }
    return values
  }

  /// Returns the values of the primary-key columns, in column order.
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
    guard let value, value != .null else { return try valueOfMissingAttribute(definition, isHashed: isHashed) }
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
      // A negative zero is stored as zero.
      return .real(seconds == 0 ? 0 : seconds)
    case .number, .sync, .tomb, .useTombstone, .rowID:
      guard let number = converted.integerValue else {
        return NumericAffinity.storedValue(ofText: bytes(of: converted))
      }
      return .integer(number)
    }
  }

  /// Returns the column's value for an attribute that the item does not have: NULL if the column may be NULL, otherwise
  /// zero or empty data, or the SHA-1 of it if the column is hashed.
  private static func valueOfMissingAttribute(
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
      return .data(flags.contains(.hashedColumn) ? try hashOfEmptyData.get() : [])
    }
  }

  // Computed once, because most items need them.
  private static let hashOfZero = Result { () throws(KeychainRuleError) in try sha1(littleEndian(0)) }
  private static let hashOfEmptyData = Result { () throws(KeychainRuleError) in try sha1([]) }

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
    do {
      return try Digest.sha1(bytes)
    } catch {
      throw KeychainRuleError(error)
    }
  }
}
