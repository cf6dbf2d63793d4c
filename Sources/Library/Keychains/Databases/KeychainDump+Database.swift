import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

extension KeychainDump {
  /// Creates a dump with every row of a keychain database, including rows that cannot be decrypted.
  ///
  /// - Parameters:
  ///   - database: The database.
  ///   - rows: The decrypted rows of the database, in its order.
  ///   - hasGivenKeys: Whether the user provided class keys.
  package init(_ database: KeychainDatabase, opened rows: [KeychainDatabase.DecryptedRow], hasGivenKeys: Bool) {
    let items = rows.enumerated().map { index, decrypted in
      DumpedItem(
        entryPosition: index, kind: decrypted.row.kind, content: decrypted.content,
        hasMismatchedDigest: decrypted.hasMatchingDigest == false
          || decrypted.result.findings.contains(.digestDiffers))
    }
    let usesOwnKeys = database.containsOwnKeys || !hasGivenKeys && items.contains { $0.item != nil }
    let keySource: DatabaseDetails.KeySource = usesOwnKeys ? .inDatabase : hasGivenKeys ? .given : .absent
    let versionCounts = Dictionary(database.rows.compactMap(\.version).map { ($0, 1) }, uniquingKeysWith: +)
    self.init(
      format: .database, items: items,
      database: DatabaseDetails(
        schema: database.schema?.text, versionCounts: versionCounts, journalStatus: database.journalStatus,
        keys: keySource, missingTables: database.missingTables))
  }
}

extension KeychainDatabase.DecryptedRow {
  /// The decrypted content, with the App Clip flag. The flag is only in a column, not in the encrypted item.
  fileprivate var content: DumpedItem.Content {
    let content = DumpedItem.Content(result)
    guard let flag = row.columns[.appClip]?.integerValue, flag != 0 else { return content }
    func addingFlag(_ item: KeychainItem) -> KeychainItem {
      var item = item
      item[.appClip] = .integer(flag)
      return item
    }
    return switch content {
    case .open(let item): .open(addingFlag(item))
    case .attributesOnly(let item, let fault): .attributesOnly(addingFlag(item), fault)
    case .undecryptable: content
    }
  }
}

extension KeychainDatabase {
  /// Whether the database has keys, all in the format that a Simulator's key store writes.
  fileprivate var containsOwnKeys: Bool {
    let keys = wrappedMetadataKeys.values.filter { !$0.isEmpty }
    return !keys.isEmpty && keys.allSatisfy { SimulatorKeyStore(detectedIn: $0) != nil }
  }
}
