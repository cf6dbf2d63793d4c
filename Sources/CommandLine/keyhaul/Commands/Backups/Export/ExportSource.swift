import KeyhaulKit
import Reports

/// The items to export. Items of a backup are decrypted one chunk at a time.
struct ExportSource {
  let origin: ExportOrigin
  private let items: Items
  private let selection: ItemSelection
  /// The accounts in files of authenticator apps.
  var authenticators = AuthenticatorAccounts()

  private enum Items {
    case encrypted(BackupItemReader, LoadedBackup)
    case loaded([KeychainEntry])
  }

  /// Creates the source for a backup.
  init(_ reader: BackupItemReader, of loaded: LoadedBackup, _ selection: ItemSelection) {
    origin = ExportOrigin(kind: .archive, name: loaded.name, isRestricted: selection.isRestricted)
    items = .encrypted(reader, loaded)
    self.selection = selection
  }

  /// Creates the source for a dump or database.
  init(of dump: ResolvedDump, _ selection: ItemSelection) {
    origin = ExportOrigin(
      kind: .dump, name: dump.name, isRestricted: selection.isRestricted, disclaimer: dump.disclaimer)
    items = .loaded(
      dump.contents.entries.filter { entry in
        entry.readablePart.map(selection.matches)
          ?? selection.matches(undecryptable: entry.kind, protection: entry.protection)
      })
    self.selection = selection
  }

  /// Creates the source for a device.
  init(of openDevice: DeviceSession, named name: String, _ selection: ItemSelection, wantsSecrets: Bool) throws {
    origin = ExportOrigin(kind: .device, name: name, isRestricted: selection.isRestricted)
    let rows = try selection.items(on: openDevice, wantsSecret: wantsSecrets)
    let indexes = try openDevice.keychain.indexes(of: Set(rows.map(\.rowReference)))
    items = .loaded(rows.map { $0.numbered(indexes) })
    self.selection = selection
  }

  /// The accounts of authenticator apps that match the selection.
  var accounts: [AuthenticatorAccounts.Account] { authenticators.accounts.filter { selection.matches($0.item) } }

  /// Calls a closure with each matching item, in the order of the source.
  ///
  /// - Throws: The closure's error, or an error if a backup cannot be read.
  func forEachEntry(
    in session: Session, _ body: (KeychainEntry) throws(CommandError) -> Void
  ) throws(CommandError) {
    switch items {
    case .loaded(let entries):
      for entry in entries { try body(entry) }
    case .encrypted(let reader, let loaded):
      try forEachEntry(of: reader, loaded, in: session, body)
    }
  }

  private func forEachEntry(
    of reader: BackupItemReader, _ loaded: LoadedBackup, in session: Session,
    _ body: (KeychainEntry) throws(CommandError) -> Void
  ) throws(CommandError) {
    var details = DecryptionDetails(of: loaded, in: session)
    func readError(_ error: KeyhaulError) -> CommandError {
      var failure = CommandError(backup: error, name: loaded.name)
      // Output that was already printed cannot be undone.
      if session.hasPrinted {
        failure.why = [failure.why, "the printed output is incomplete"].compactMap(\.self).joined(separator: "; ")
      }
      return failure
    }
    try reader.forEachChunk(translating: readError) {
      (items) throws(CommandError) in
      details.record(items)
      for item in items {
        let isSelected =
          item.item.map(selection.matches) ?? selection.matches(undecryptable: item.kind, protection: item.protection)
        if isSelected { try body(KeychainEntry(item, reason: reader.reason(of: item))) }
      }
    }
    details.report()
  }
}

/// The source of exported items.
struct ExportOrigin {
  enum Kind: String { case archive, device, dump }

  let kind: Kind
  /// The source's name, as the user typed it.
  let name: String
  /// Whether the user selected only some of the source's items.
  let isRestricted: Bool
  /// The disclaimer that the export of a dump contains; `nil` if the source is not a dump.
  var disclaimer: DumpDisclaimer?

  /// The JSON members about items that the source cannot show.
  var blindSpotFields: [(String, JSONValue)] {
    kind == .archive ? [BackupBlindSpots.field] : disclaimer.map { [$0.field] } ?? []
  }

  /// Whether to omit secrets that an access control protects. A dump contains such secrets without protection.
  var omitsProtectedSecrets: Bool { kind != .dump }

  /// Returns the document of the items.
  func document(revealsSecrets: Bool) -> ItemDocument {
    ItemDocument(
      source: (kind.rawValue, name), revealsSecrets: revealsSecrets, omitsProtectedSecrets: omitsProtectedSecrets)
  }
}
