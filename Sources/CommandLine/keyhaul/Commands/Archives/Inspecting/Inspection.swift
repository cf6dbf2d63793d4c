import KeyhaulKit
import Reports

/// What can be said of an archive, with or without its password (`backup-inspection/1`).
struct Inspection: Report {
  let name: String
  let archive: BackupArchive
  let part: Inspect.Part?
  /// With its keychain's items tried; `nil` without the password.
  let opened: OpenedArchive?
  /// What the device that made it has besides, where it is available.
  let maker: MakerItems?
  let files: StoredPayloads
  /// The list of files counted, with what it names and is not stored; `nil` where the list stays closed.
  let listing: FileList.Listing?
  /// The files by domain, the largest first; `nil` where the list stays closed.
  let domains: [FilesByDomain.Domain]?
  /// Only where it is asked for.
  let tree: DomainTree?
  /// Every file by its name, with `--tree` and `-v`.
  let everyFile: EveryFile?
  /// How long deriving the password's key is likely to take on this machine; `nil` where the keybag does not say what to
  /// derive.
  let unlockTime: Duration?
  /// How long it took, where it was derived.
  let measuredUnlock: Duration?
  /// Whether a password was given that unwraps class keys, also where nothing else opens.
  let hasFittingPassword: Bool
  /// What was gone around to show it.
  let findings: [ArchiveFinding]

  /// - Parameters:
  ///   - unopened: Why it, or a part of it, does not open though the password is right.
  ///   - isTimed: Whether it says how long this machine takes, which is never the same twice.
  ///   - hasFittingPassword: Whether a password was given that unwraps class keys.
  init(
    _ named: NamedArchive, opened: OpenedArchive?, maker: MakerItems? = nil, unopened: ArchiveFinding? = nil,
    part: Inspect.Part?, wantsTree: Bool, showsAll: Bool, unlockedIn measured: Duration? = nil, isTimed: Bool = true,
    hasFittingPassword: Bool = false, clock: some Clock<Duration> = ContinuousClock()
  ) throws(CommandFailure) {
    name = named.name
    archive = named.archive
    self.part = part
    self.opened = opened
    self.maker = maker
    self.hasFittingPassword = hasFittingPassword
    do throws(BackupArchiveError) {
      let stored = try archive.storedFiles()
      files = stored
      var byDomain = FilesByDomain()
      let (list, fault) = try Self.list(of: archive, opened, isNeeded: wantsTree)
      if wantsTree, let list {
        let builder = DomainTree.Builder(stored: stored, depth: showsAll ? .max : 1)
        let namesFiles = part == .tree && showsAll
        var index = FilesByDirectory()
        listing = try list.listing(against: stored, lending: .file) { (file, place) throws(BackupArchiveError) in
          builder.add(file)
          byDomain.add(file, stored: stored)
          if namesFiles { index.add(file, at: place) }
        }
        tree = builder.tree
        everyFile = namesFiles ? EveryFile(list: list, index: index, stored: files, archive: named.name) : nil
      } else {
        listing = try list?.listing(against: stored, lending: .file) { (file, _) throws(BackupArchiveError) in
          byDomain.add(file, stored: stored)
        }
        tree = nil
        everyFile = nil
      }
      var found = opened?.findings ?? archive.findings
      found += ((list?.findings ?? []) + [stored.finding].compactMap(\.self)).filter { !found.contains($0) }
      findings = found + [unopened, unopened == nil ? fault : nil].compactMap(\.self).filter { !found.contains($0) }
      domains = list == nil ? nil : byDomain.largestFirst
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    measuredUnlock = isTimed ? measured : nil
    unlockTime = !isTimed ? nil : try? archive.keybag.derivationParameters().estimatedDuration(by: clock)
  }

  /// The list of files where it can be had, and where nothing of it can be read, why.
  ///
  /// - Throws: Why, where it is what was asked for, and for one that no device makes.
  private static func list(
    of archive: BackupArchive, _ opened: OpenedArchive?, isNeeded: Bool
  ) throws(BackupArchiveError) -> (FileList?, ArchiveFinding?) {
    // Old backups have theirs in clear, also where they have a password.
    guard opened == nil, !archive.isListEncrypted else { return (opened?.fileList, nil) }
    // What says that it is not there.
    guard !archive.findings.contains(where: { $0.kind == .listUnreadable }) else { return (nil, nil) }
    do throws(BackupArchiveError) {
      return (try archive.fileList(), nil)
    } catch {
      guard !isNeeded, error.category == .damaged else { throw error }
      // Its key would be in the manifest.
      let isPerhapsSealed = archive.isManifestUnreadable && archive.layout == .manifestDB
      let reason = isPerhapsSealed ? "\(error.reason), or it is encrypted" : error.reason
      return (nil, .listUnreadable(name: archive.layout.listName, reason: reason))
    }
  }

  var tail: (any ReportTail)? { everyFile }

  var json: JSONValue {
    InspectionDocument(
      archive, opened: opened, files: files, listing: listing, domains: domains, tree: tree,
      unlockTime: (unlockTime, measuredUnlock), listsItems: part == .list, showsTree: part == .tree, maker: maker,
      findings: findings
    ).json
  }

  /// What of its keychain's keys no device leaves so.
  var unbound: UnboundKeychain? { archive.unboundKeychain }
  var isUnlocked: Bool { opened != nil }
  /// `nil` where there is no keychain to count.
  var contents: ArchiveContents? {
    archive.hasKeychain && opened?.hiddenKeychain == nil ? opened?.contents : nil
  }

  /// Some items neither open nor stay closed by a rule.
  var isPartlyUnreadable: Bool {
    unreadableCount > 0 || (listing?.missingCount ?? 0) > 0 || findings.contains(where: \.isLoss)
  }

  var unreadableCount: Int { opened?.items.count { reason(of: $0)?.isDamage == true } ?? 0 }

  /// Why an item does not open here.
  func reason(of item: ArchivedItem) -> Reason? { opened?.reason(of: item) }
}
