import ArchivedKeychain
import Certificates
import CommandSession
import DataProtection
package import KeychainFormats
import KeychainStore
import Migration
package import Reports

extension ItemText {
  /// "generic password "chat.example · anna"", in one line that is safe to show.
  package static func line(of row: ItemRow) -> String {
    "\(row.summary.kind.noun) \"\(HostileText.shown(name(row.identity), columns: 80))\""
  }

  /// What a person knows an item by. A key without a label is named by its tag, or by what it is. Hostile.
  package static func name(of item: KeychainItem) -> String {
    guard item.kind == .key, item[.label] == nil else { return name(ItemIdentity(item)) }
    if let tag = item[.applicationTag]?.dataValue.flatMap({ String(validating: $0, as: UTF8.self) }), !tag.isEmpty {
      return tag
    }
    let size = item[.keySizeInBits]?.integerValue ?? 0
    let half = item[.keyClass]?.integerValue == KeyMaterial.Half.privateKey.rawValue ? "private" : "public"
    let isRSA = item[.type]?.integerValue == KeyMaterial.KeyType.rsa.rawValue
    return isRSA ? "RSA, \(Amounts.grouped(size)) bits, \(half)" : "P-\(size), \(half)"
  }
}
