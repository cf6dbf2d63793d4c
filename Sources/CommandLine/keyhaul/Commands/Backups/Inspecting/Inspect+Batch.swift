import ArgumentParser
import KeyhaulKit
import Reports

extension Inspect {
  /// The members of each element of `items`, for backups and dumps.
  static let table = FieldTable(
    rows: "items",
    fields: [
      "index", "entry", "kind", "label", "account", "service", "server", "access_group", "protection", "readable",
      "table_stated", "attributes_readable", "secret_readable", "secret_rendered", "unusable_attributes", "reason",
      "detail",
    ])
  static let fieldsAdvice = "--list, or several backups"
  var fieldTable: FieldTable? { part == .list ? Self.table : nil }

  static let listsBackups = true

  func listing(of folders: [String]) -> any BatchCommand {
    var command = self
    command.paths = folders
    return command
  }

  func validateBatch() throws(CommandError) {
    guard !hash else {
      throw .usage("--hash accepts one backup", why: "it prints one line", try: "keyhaul inspect --hash ARCHIVE")
    }
  }

  var needsPassword: Bool { part == .list || part == .tree }

  var suggestedFlags: [String] { part.map { ["--\($0.rawValue)"] } ?? [] }

  func resultParameters(in session: Session) -> [String] {
    (part.map { ["--\($0.rawValue)"] } ?? []) + accessOptions.decryption.resultParameters + common.detail
  }

  static let csvColumns = [
    ResultColumn("product_type", at: "device", "product_type"), ResultColumn("model", at: "device", "model_name"),
    ResultColumn("ios", at: "device", "product_version"), ResultColumn("build", at: "device", "build_version"),
    ResultColumn("serial_number", at: "device", "serial_number"), ResultColumn("bytes", at: "bytes"),
    ResultColumn("files", at: "files"),
    ResultColumn("items") { document in itemCount(in: document).map { .integer($0) } },
    ResultColumn("missing_files", at: "missing"),
  ]

  static let textColumns = [
    ResultTextColumn(title: "MODEL", width: 14) { document in
      let device = document["device"]
      return device?["model_name"]?.stringValue ?? device?["product_type"]?.stringValue
    },
    ResultTextColumn(title: "IOS", width: 15, label: "iOS ") { document in
      guard let device = document["device"], let version = device["product_version"]?.stringValue else { return nil }
      return version + (device["build_version"]?.stringValue.map { " (\($0))" } ?? "")
    },
    ResultTextColumn(title: "SERIAL", width: 12, label: "serial number ") { document in
      document["device"]?["serial_number"]?.stringValue
    },
    ResultTextColumn(title: "ITEMS", width: 6, isRightAligned: true, label: "items: ") { document in
      itemCount(in: document).map { HumanReadable.grouped($0) }
    },
    ResultTextColumn(title: "BYTES", width: 15, isRightAligned: true, label: "bytes: ") { document in
      document["bytes"]?.integerValue.map { HumanReadable.grouped($0) }
    },
  ]

  static func result(in document: JSONValue, code: Int32) -> BackupResult? {
    guard code == 0 else { return nil }
    guard let keychain = document["keychain"] else {
      // A dump's document counts its items by table.
      return document["by_table"] == nil ? nil : .counted
    }
    if keychain["present"]?.booleanValue == false { return .noKeychain }
    return itemCount(in: document) == nil ? .notCounted : .counted
  }

  static func reason(in document: JSONValue, code: Int32) -> String? {
    var parts: [String] = []
    if let missingCount = document["missing"]?.integerValue, missingCount > 0 {
      parts.append(
        "\(HumanReadable.count(Int(clamping: missingCount), "listed file")) \(missingCount == 1 ? "is" : "are") not stored"
      )
    }
    let damagedCount = damagedItemCount(in: document)
    if damagedCount > 0 {
      parts.append(
        "\(HumanReadable.count(Int(clamping: damagedCount), "item")) \(damagedCount == 1 ? "is" : "are") damaged")
    }
    if parts.isEmpty { return document["findings"]?.arrayValue?.first?["detail"]?.stringValue }
    return HumanReadable.list(parts)
  }

  /// Returns the number of damaged items. The document counts undecrypted items by reason.
  private static func damagedItemCount(in document: JSONValue) -> Int64 {
    let groups = document["keychain"]?["sealed"]?.arrayValue ?? []
    let damagedGroups = groups.filter { group in
      group["reason"]?.stringValue.flatMap(Reason.init(rawValue:))?.isDamage == true
    }
    return damagedGroups.compactMap { $0["count"]?.integerValue }.reduce(0, +)
  }

  /// Returns the sum of the document's item counts, one for each kind; `nil` if the document does not count items.
  private static func itemCount(in document: JSONValue) -> Int64? {
    document["keychain"]?["items"]?.fields?.compactMap { _, count in count.integerValue }.reduce(0, +)
  }
}
