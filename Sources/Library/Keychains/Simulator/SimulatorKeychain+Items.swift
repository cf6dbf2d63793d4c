package import Basics
import KeychainCrypto
package import KeychainFormats
import KeychainRules

/// A column of a row and the value to write to it.
private typealias ColumnAssignment = (code: AttributeCode, value: ColumnValue)

extension SimulatorKeychain {
  /// The result of inserting an item.
  package enum InsertResult: Sendable, Hashable {
    /// There was no item with the same primary key.
    case added
    /// The item replaced an item with the same primary key. The row number and the persistent reference stay.
    case replaced
    /// There was an item with the same primary key, which was kept.
    case kept
  }

  /// Inserts an item, encrypted with a new item key.
  ///
  /// - Parameters:
  ///   - item: The decrypted item. An item without a persistent reference gets one.
  ///   - replacingExisting: Whether the item replaces an existing item with the same primary key.
  /// - Throws: `.malformed`, with the reason, if the item cannot be encrypted.
  package func insert(_ item: KeychainItem, replacingExisting: Bool) throws(KeyhaulError) -> InsertResult {
    let existing = try existingRow(like: item)
    guard existing == nil || replacingExisting else { return .kept }
    var item = item
    let appClipFlag = item[.appClip]?.integerValue
    item[.appClip] = nil
    let reference = existing?.persistentReference ?? item[.persistentReference]?.dataValue
    item[.persistentReference] = .data(try validReference(reference))
    var assignments = try assignments(storing: item)
    if let appClipFlag, columns[item.kind]?.contains("clip") == true {
      assignments.append((.appClip, .integer(appClipFlag)))
    }
    if let existing {
      try overwrite(existing.rowID, of: item.kind, with: assignments)
      return .replaced
    }
    try addRow(of: item.kind, with: assignments)
    return .added
  }

  /// Replaces the item of a row. The new item is encrypted with a new item key, and its persistent reference is stored
  /// as it is.
  ///
  /// - Throws: `.databaseDuplicate` if another row has the item's primary key; `.malformed` if the item cannot be
  ///   encrypted or the row does not exist.
  package func replace(row: Int64, with item: KeychainItem) throws(KeyhaulError) {
    if let existing = try existingRow(like: item), existing.rowID != row {
      throw KeyhaulError(.databaseDuplicate, "another \(item.kind.reportName) has the same primary key")
    }
    var item = item
    item[.appClip] = nil
    try overwrite(row, of: item.kind, with: try assignments(storing: item))
  }

  /// Deletes a row.
  ///
  /// - Throws: `.malformed` if the row does not exist.
  package func remove(row: Int64, of kind: ItemKind) throws(KeyhaulError) {
    guard try database.run("DELETE FROM main.\(kind.rawValue) WHERE rowid = ?", [.integer(row)]) == 1 else {
      throw .missingRow
    }
  }

  /// Deletes every row whose `agrp` column names one of these access groups, including tombstones.
  ///
  /// - Returns: The number of deleted rows.
  package func removeItems(ofGroups groups: [String]) throws(KeyhaulError) -> Int {
    var count = 0
    for kind in ItemKind.allCases {
      for group in Set(groups) {
        count += try database.run("DELETE FROM main.\(kind.rawValue) WHERE agrp = ?", [.text(group)])
      }
    }
    return count
  }

  private func addRow(of kind: ItemKind, with assignments: [ColumnAssignment]) throws(KeyhaulError) {
    let names = assignments.map { "\"\($0.code.rawValue)\"" }.joined(separator: ", ")
    let placeholders = assignments.map { _ in "?" }.joined(separator: ", ")
    try database.run("INSERT INTO main.\(kind.rawValue)(\(names)) VALUES (\(placeholders))", assignments.map(\.value))
  }

  private func overwrite(
    _ row: Int64, of kind: ItemKind, with assignments: [ColumnAssignment]
  ) throws(KeyhaulError) {
    let setters = assignments.map { "\"\($0.code.rawValue)\" = ?" }.joined(separator: ", ")
    let count = try database.run(
      "UPDATE main.\(kind.rawValue) SET \(setters) WHERE rowid = ?", assignments.map(\.value) + [.integer(row)])
    guard count == 1 else { throw .missingRow }
  }

  /// Returns the row that has the primary key of an item.
  private func existingRow(
    like item: KeychainItem
  ) throws(KeyhaulError) -> (rowID: Int64, persistentReference: [UInt8]?)? {
    let columnNames = columns[item.kind] ?? []
    var conditions: [String] = []
    var values: [ColumnValue] = []
    for definition in ColumnDefinitions.primaryKey(of: item.kind) where columnNames.contains(definition.code.rawValue) {
      let value = try columnValue(item[definition.code], definition)
      // Empty data may be stored as text or as a blob.
      let name = "\"\(definition.code.rawValue)\""
      conditions.append(value.isEmptyTextOrBlob ? "(\(name) = ? OR \(name) = x'')" : "\(name) = ?")
      values.append(value)
    }
    let reference = columnNames.contains("persistref") ? "persistref" : "NULL"
    var existing: (rowID: Int64, persistentReference: [UInt8]?)?
    try database.forEachRow(
      "SELECT rowid, \(reference) FROM main.\(item.kind.rawValue) WHERE \(conditions.joined(separator: " AND "))",
      values
    ) { row in existing = row.integer(0).map { ($0, row.data(1)) } }
    return existing
  }

  /// Returns the given persistent reference, or a new one if it is missing or has the wrong length.
  private func validReference(_ reference: [UInt8]?) throws(KeyhaulError) -> [UInt8] {
    if let reference, reference.count == PersistentReference.uuidByteCount { return reference }
    return try Self.translatingErrors { [random] () throws(DataProtectionError) in
      try random.bytes(PersistentReference.uuidByteCount)
    }
  }

  // MARK: Column values

  /// Returns the values of all columns of a row that stores an item, which is encrypted with a new item key.
  private func assignments(storing item: KeychainItem) throws(KeyhaulError) -> [ColumnAssignment] {
    guard let protection = item.protection else {
      throw .unstorableItem("an item has no protection class")
    }
    try createKeyIfNeeded(of: protection)
    let columnNames = columns[item.kind] ?? []
    var assignments: [ColumnAssignment] = []
    for definition in ColumnDefinitions.all(of: item.kind)
    where columnNames.contains(definition.code.rawValue) && !Self.speciallyWrittenColumns.contains(definition.code) {
      assignments.append((definition.code, try columnValue(item[definition.code], definition)))
    }
    do throws(ItemCryptoError) {
      let encryptedItem = try encrypted(item, protection)
      assignments += [(.encryptedData, .blob(encryptedItem)), (.digest, .blob(try item.digest()))]
    } catch {
      throw .unstorableItem("an item cannot be encrypted: \(error.reason)")
    }
    return assignments
  }

  /// Columns whose values are not computed from the attribute of the same name.
  private static let speciallyWrittenColumns: Set<AttributeCode> = ["rowid", "data", "sha1", .appClip]

  private func columnValue(
    _ value: PropertyValue?, _ definition: AttributeDefinition
  ) throws(KeyhaulError) -> ColumnValue {
    do throws(KeychainRuleError) {
      return try ItemColumns.value(value, for: definition)
    } catch {
      throw .unstorableItem("an item cannot be stored: \(error.reason)")
    }
  }

  private func encrypted(_ item: KeychainItem, _ protection: ProtectionClass) throws(ItemCryptoError) -> [UInt8] {
    var item = item
    let accessControl = try Self.removeAccessControl(from: &item, protection)
    let blob = try keys.seal(
      item, accessControl: accessControl, version: schema.major >= 12 ? .v8 : .v7, wrapping: .simulator(keyStore),
      random: random)
    do throws(FormatError) { return try blob.serialized() } catch { throw ItemCryptoError(.malformed(error)) }
  }

  /// Removes the constraints from the item, because a database item stores them separately.
  ///
  /// - Returns: The access control with these constraints, or `nil` if the item has none.
  private static func removeAccessControl(
    from item: inout KeychainItem, _ protection: ProtectionClass
  ) throws(ItemCryptoError) -> ItemAccessControl? {
    guard let constraints = item[.accessControl]?.dictionaryValue else { return nil }
    item[.accessControl] = nil
    do throws(FormatError) {
      return try ItemAccessControl(members: [
        ItemAccessControl.protectionKey: .string(protection.rawValue),
        ItemAccessControl.constraintsKey: .dictionary(constraints),
      ])
    } catch {
      throw ItemCryptoError(.malformed(error))
    }
  }
}
