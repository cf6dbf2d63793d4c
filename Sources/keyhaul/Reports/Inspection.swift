import ArchivedKeychain
import BackupArchive
import DataProtection
import KeychainFormats

/// What can be said of an archive, with or without its password (`backup-inspection/1`).
struct Inspection {
  let name: String
  let archive: BackupArchive
  let part: Inspect.Part?
  /// Shows long lists whole.
  let showsAll: Bool
  /// Whether the password was at hand, or none is needed.
  let isUnlocked: Bool
  /// The keychain with its items tried; `nil` without the password, and where there is none or it cannot be read.
  let opened: OpenedArchive?
  let files: StoredPayloads
  /// `nil` where the list of files stays closed.
  let listing: FileList.Listing?
  /// Files that the list names and that are not stored.
  let missing: Int?
  /// Only where it is asked for.
  let tree: DomainTree?
  /// How long deriving the password's key takes on this machine; `nil` where the keybag does not say what to derive.
  let unlockTime: Duration?
  /// What is wrong with the archive, to be said after everything else.
  let failure: CommandFailure?

  init(
    _ named: Session.NamedArchive, keys: borrowing ClassKeys?, part: Inspect.Part?, showsAll: Bool,
    clock: some Clock<Duration> = ContinuousClock()
  ) throws(CommandFailure) {
    name = named.name
    archive = named.archive
    self.part = part
    self.showsAll = showsAll
    do throws(BackupArchiveError) {
      files = try archive.storedFiles()
      let list = try Self.list(of: archive, keys: keys)
      listing = try list?.listing()
      missing = try list?.missingPayloads(in: files).count
      if part == .tree, let list {
        tree = try DomainTree(of: list, stored: files, depth: showsAll ? .max : 1)
      } else {
        tree = nil
      }
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    unlockTime = try? archive.keybag.derivationParameters().estimatedDuration(by: clock)
    switch keys {
    case .none: (isUnlocked, opened, failure) = (false, nil, nil)
    case .some(let keys):
      isUnlocked = true
      do throws(ArchivedKeychainError) {
        let opened = try OpenedArchive(archive, keys: keys)
        self.opened = opened
        failure = opened.keybagDamage.map { .damagedKeybag(of: named.name, report: $0) }
      } catch {
        opened = nil
        let hasNone = (error.underlying as? BackupArchiveError)?.code == .noKeychain
        failure = hasNone ? nil : CommandFailure(archive: error, name: named.name)
      }
    }
  }

  private static func list(
    of archive: BackupArchive, keys: borrowing ClassKeys?
  ) throws(BackupArchiveError) -> FileList? {
    switch keys {
    case .some(let keys): return try archive.fileList(with: keys)
    // Old backups have theirs in clear, also where they have a password.
    case .none: return archive.isEncrypted && archive.layout != .mbdb ? nil : try archive.fileList()
    }
  }

  var contents: ArchiveContents? { opened?.contents }

  /// Some items neither open nor stay closed by a rule.
  var isPartlyUnreadable: Bool { unreadableCount > 0 || (missing ?? 0) > 0 }

  var unreadableCount: Int { opened?.items.count { reason(of: $0)?.isDamage == true } ?? 0 }

  /// Why an item does not open here.
  func reason(of item: ArchivedItem) -> Reason? {
    item.reason(isSameDevice: opened?.items.provesSameDevice, backupHasPassword: archive.isEncrypted)
  }

  /// What `-v` and `-vv` say besides.
  func tellDetails(in session: Session) {
    let name = HostileText.shown(name)
    for note in opened?.notes ?? archive.notes { session.detail("\(name): \(note)") }
    session.detail("  \(archive.digest)", level: 2)
    guard let opened else { return }
    let readable = opened.items.count { $0.item != nil }
    session.detail("\(name): \(readable) of \(Amounts.count(opened.items.count, "item")) open here")
    for item in opened.items {
      guard let blob = item.blob else { continue }
      let place = "\(Amounts.bytes(blob.byteCount)) at \(Amounts.grouped(blob.offset))"
      session.detail("  item \(item.index): \(place), \(ItemText.protection(item.protection))", level: 2)
    }
  }
}
