import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

extension KeychainDump {
  /// A keychain's own database as a keychain that verbs read: every row is an item, those that do not open too.
  ///
  /// - Parameters:
  ///   - database: The rows.
  ///   - rows: The same with what of them opened, in their order.
  ///   - hasGivenKeys: Whether keys of classes were given.
  package init(_ database: KeychainDatabase, opened rows: [KeychainDatabase.OpenedRow], hasGivenKeys: Bool) {
    let items = rows.enumerated().map { place, row in
      DumpedItem(
        entry: place, kind: row.row.kind, content: row.content,
        hasOtherDigest: row.hasFittingDigest == false || row.opened.findings.contains(.digestDiffers))
    }
    let opensByItself = database.keepsItsKeys || !hasGivenKeys && items.contains { $0.item != nil }
    self.init(
      form: .database, items: items,
      database: DatabaseFacts(
        schema: database.schema?.text,
        versionCounts: Dictionary(database.rows.compactMap(\.version).map { ($0, 1) }, uniquingKeysWith: +),
        log: database.log, keys: opensByItself ? .beside : hasGivenKeys ? .given : .absent,
        missingTables: database.missingTables))
  }
}

extension KeychainDatabase.OpenedRow {
  /// What of it is in clear, with the mark of an App Clip, which stands in a column alone.
  fileprivate var content: DumpedItem.Content {
    let content = DumpedItem.Content(opened)
    guard let mark = row.columns[.appClip]?.integerValue, mark != 0 else { return content }
    func marked(_ item: KeychainItem) -> KeychainItem {
      var item = item
      item[.appClip] = .integer(mark)
      return item
    }
    return switch content {
    case .open(let item): .open(marked(item))
    case .attributesOnly(let item, let fault): .attributesOnly(marked(item), fault)
    case .shut: content
    }
  }
}

extension KeychainDatabase {
  /// Whether its keys lie in it as a Simulator's key store leaves them: all of them, and there are some.
  fileprivate var keepsItsKeys: Bool {
    let keys = wrappedMetadataKeys.values.filter { !$0.isEmpty }
    return !keys.isEmpty && keys.allSatisfy { SimulatorKeyStore.of($0) != nil }
  }
}
