import KeyhaulKit
import Reports

/// The items that an export is about, one after the other. Those of an archive are opened when it is their turn.
struct ExportSource {
  let origin: ExportOrigin
  private let items: Items
  private let selection: ItemSelection
  /// The accounts in files of authenticator apps.
  var authenticators = AuthenticatorAccounts()

  private enum Items {
    case sealed(BackupItemReader, NamedArchive)
    case held([KeychainEntry])
  }

  init(_ reader: BackupItemReader, of named: NamedArchive, _ selection: ItemSelection) {
    origin = ExportOrigin(kind: .archive, name: named.name, isRestricted: selection.isRestricted)
    items = .sealed(reader, named)
    self.selection = selection
  }

  init(of found: FoundDump, _ selection: ItemSelection) {
    origin = ExportOrigin(
      kind: .dump, name: found.typed, isRestricted: selection.isRestricted, statement: found.statement)
    items = .held(
      found.dump.entries.filter { entry in
        entry.attributes.map(selection.matches) ?? selection.matches(undecryptable: entry.kind, entry.protection)
      })
    self.selection = selection
  }

  init(of openDevice: DeviceSession, named name: String, _ selection: ItemSelection, wantsSecrets: Bool) throws {
    origin = ExportOrigin(kind: .device, name: name, isRestricted: selection.isRestricted)
    let rows = try selection.found(on: openDevice, wantsSecret: wantsSecrets)
    let indexes = try openDevice.keychain.positions(of: Set(rows.map(\.place)))
    items = .held(rows.map { $0.numbered(indexes) })
    self.selection = selection
  }

  /// The accounts in files that the user asked for.
  var accounts: [AuthenticatorAccounts.Account] { authenticators.accounts.filter { selection.matches($0.item) } }

  /// Gives every item that is meant, in the order of the source.
  ///
  /// - Throws: What `body` throws, and what the system did not give of an archive.
  func forEachEntry(
    in session: Session, _ body: (KeychainEntry) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    switch items {
    case .held(let entries):
      for entry in entries { try body(entry) }
    case .sealed(let reader, let named):
      var details = OpeningDetails(of: named, in: session)
      let name = named.name
      func failure(_ error: KeyhaulError) -> CommandFailure {
        var failure = CommandFailure(archive: error, name: name)
        // Of what standard output has taken nothing can be taken back.
        if session.hasPrinted {
          failure.why = [failure.why, "the printed output is incomplete"].compactMap(\.self).joined(separator: "; ")
        }
        return failure
      }
      try reader.forEachPortion(translating: failure) {
        (portion) throws(CommandFailure) in
        details.take(portion)
        for item in portion {
          guard item.item.map(selection.matches) ?? selection.matches(undecryptable: item.kind, item.protection) else {
            continue
          }
          try body(KeychainEntry(item, reason: reader.reason(of: item)))
        }
      }
      details.say()
    }
  }
}

/// Where the items of an export are from.
struct ExportOrigin {
  enum Kind { case archive, device, dump }

  let kind: Kind
  /// What the user called it.
  let name: String
  /// Whether it is some of its items that are meant.
  let isRestricted: Bool
  /// Of a dump: what is said of it. Its secrets are in clear, also those that an access control guarded.
  var statement: DumpDisclaimer?

  /// What a document says of what it cannot know.
  var blindSpotFields: [(String, JSONValue)] {
    kind == .archive ? [BackupBlindSpots.field] : statement.map { [$0.field] } ?? []
  }

  var omitsProtectedSecrets: Bool { kind != .dump }

  /// Of the items, before they are written.
  func document(revealsSecrets: Bool) -> ItemDocument {
    let noun =
      switch kind {
      case .archive: "archive"
      case .device: "device"
      case .dump: "dump"
      }
    return ItemDocument(
      source: (noun, name), revealsSecrets: revealsSecrets, omitsProtectedSecrets: omitsProtectedSecrets)
  }
}
