import ArchivedKeychain
import Foundation
import KeychainFormats
import KeychainStore
import Migration

/// The table of `item find --format csv`, for spreadsheets and other programs. Names are whole, as in JSON.
enum ItemCSV {
  private static let columns = [
    "kind", "service", "server", "account", "label", "access_group", "protection", "protocol", "port", "path",
    "synchronizable", "created", "changed", "readable",
  ]
  /// One of the two has it: the text where the bytes are text that a spreadsheet leaves alone, base64 for all others.
  private static let secretColumns = ["secret", "secret_base64"]

  static func text(of rows: [ItemRow], revealsSecrets: Bool) -> String {
    CSV.line(columns + (revealsSecrets ? secretColumns : []))
      + rows.map { CSV.line(fields(of: $0) + (revealsSecrets ? secret(of: $0) : [])) }.joined()
  }

  private static func fields(of row: ItemRow) -> [String] {
    let identity = row.identity
    let item = row.stored?.item
    let dates = [item?.creationDate, row.modificationDate].map { $0.map(Timestamp.text) ?? "" }
    let names = [identity.service, identity.server, identity.account, identity.label, identity.accessGroup]
    return [row.summary.kind.reportName] + names.map { $0 ?? "" }
      + [
        row.protection?.rawValue ?? "", plain(item?[.protocolType]), plain(item?[.port]), plain(item?[.path]),
        row.summary.isSynchronizable ? "1" : "0",
      ] + dates + [row.stored == nil ? "0" : "1"]
  }

  private static func plain(_ value: PropertyValue?) -> String {
    switch value {
    case .string(let text): text
    case .integer(let number): String(number)
    case .data(let bytes): String(validating: bytes, as: UTF8.self) ?? ""
    default: ""
    }
  }

  /// Those of items that ask for their owner are never shown.
  private static func secret(of row: ItemRow) -> [String] {
    guard let stored = row.stored, stored.accessControl == nil, let secret = stored.item.secret else {
      return ["", ""]
    }
    return secret.withBytes { bytes in
      let text = String(validating: bytes, as: UTF8.self)
      if let text, !CSV.isFormula(text) { return [text, ""] }
      return ["", Data(bytes).base64EncodedString()]
    }
  }
}
