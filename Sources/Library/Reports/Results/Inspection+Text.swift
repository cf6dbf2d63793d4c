package import KeyhaulKit

extension Inspection {
  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    switch part {
    case .keybag?: keybagLines(style)
    case .list?: itemLines(style) + blindSpotLines(style, showsAll: showsAll)
    case .tree?: treeLines(style, showsAll: showsAll)
    case nil: overview(style, showsAll: showsAll)
    }
  }

  /// Returns the lines about items that are not in the backup; empty if the backup has no keychain or is incomplete.
  private func blindSpotLines(_ style: TextStyle, showsAll: Bool) -> [String] {
    guard archive.hasKeychain, !archive.isPartial else { return [] }
    return (sourceDeviceItems?.lines(style: style, showsAll: showsAll) ?? []) + BackupBlindSpots.lines(style: style)
  }

  // MARK: The overview

  private static let labelColumns = 15
  private static let minimumTextColumns = 40

  private struct OverviewRow {
    let label: String
    let text: String
    /// Whether the names in the text are already escaped.
    var isEscaped = false
  }

  private func overview(_ style: TextStyle, showsAll: Bool) -> [String] {
    let escapedName = UntrustedText.escaped(name)
    let isNameWide = DisplayWidth.columns(of: escapedName) > Self.labelColumns
    let rows = overviewRows(style, firstLabel: isNameWide ? "" : escapedName, showsAll: showsAll)
    var lines =
      boundText.map { WordWrap.lines(of: style.adapted(UntrustedText.escaped($0)), columns: style.width) } ?? []
    // A path that is wider than the labels gets its own line.
    if isNameWide { lines.append(escapedName) }
    lines += rows.flatMap { row in
      WordWrap.labeled(
        DisplayWidth.padded(row.label, columns: Self.labelColumns) + " ",
        UntrustedText.escaped(row.text, keepingEscapes: row.isEscaped),
        columns: max(style.width, Self.labelColumns + Self.minimumTextColumns))
    }
    if unreadableCount > 0 {
      lines.append("\(HumanReadable.count(unreadableCount, "item")) cannot be read in this copy; --list shows which.")
    }
    lines += blindSpotLines(style, showsAll: showsAll)
    if !isUnlocked, archive.hasKeychain, !archive.isPartial, archive.isEncrypted, !isKeybagUnusable {
      lines.append(
        hasMatchingPassword
          ? "The password is right: it unwraps class keys of the keybag."
          : "To list its items, add --password-file FILE.")
    }
    return lines
  }

  private func overviewRows(_ style: TextStyle, firstLabel: String, showsAll: Bool) -> [OverviewRow] {
    let size = "\(HumanReadable.count(files.count, "file")), \(HumanReadable.bytes(files.byteCount))"
    let details = BackupDetails(archive)
    var rows = [
      OverviewRow(label: firstLabel, text: "\(origin) · \(protectionText) · \(size)"),
      OverviewRow(label: "device", text: details.device),
      OverviewRow(label: "backup", text: details.origin(formatting: LocalTimeFormat.local)),
      OverviewRow(label: "files", text: filesText),
    ]
    rows += domainRows(style, showsAll: showsAll)
    rows.append(OverviewRow(label: "keybag", text: keybagText(details)))
    rows.append(OverviewRow(label: "keychain", text: keychainText))
    if let itemCounts { rows.append(OverviewRow(label: "items", text: itemsText(itemCounts))) }
    rows += findings.map { OverviewRow(label: "found", text: $0.description, isEscaped: true) }
    if let undecryptedText { rows.append(OverviewRow(label: "encrypted", text: undecryptedText)) }
    return rows
  }

  /// The maximum number of domains in the overview, unless all are requested.
  private static let defaultDomainLimit = 5

  /// Returns rows with the largest domains, each with the name of its app if the backup has it; empty if there is only
  /// one domain.
  private func domainRows(_ style: TextStyle, showsAll: Bool) -> [OverviewRow] {
    guard let domains, domains.count > 1 else { return [] }
    let apps = InstalledApps.names(in: archive)
    let listedDomains = showsAll ? domains[...] : domains.prefix(Self.defaultDomainLimit)
    var texts = listedDomains.map { domain in
      let app = domain.identifier.flatMap { identifier in
        apps[String(identifier)].flatMap { $0 == identifier ? nil : " (\($0))" }
      }
      let missing = domain.missingCount == 0 ? "" : ", \(HumanReadable.grouped(domain.missingCount)) missing"
      return "\(domain.name)\(app ?? ""): \(HumanReadable.count(domain.fileCount, "file")), "
        + "\(HumanReadable.bytes(domain.storedByteCount))\(missing)"
    }
    let omittedCount = domains.count - listedDomains.count
    if omittedCount > 0 {
      texts.append("\(style.ellipsis) \(HumanReadable.grouped(omittedCount)) more (-v shows all)")
    }
    return texts.enumerated().map { index, text in OverviewRow(label: index == 0 ? "domains" : "", text: text) }
  }

  private var protectionText: String {
    if archive.isManifestUnreadable { return "it is not known whether it has a password" }
    if archive.isManifestMissing {
      return "no Manifest.plist, \(archive.areFilesEncrypted ? "encrypted" : "unencrypted") files"
    }
    if archive.areFilesEncrypted { return "encrypted" }
    return archive.isEncrypted ? "unencrypted files, password-protected items" : "no password"
  }

  private func keybagText(_ details: BackupDetails) -> String {
    if archive.isManifestUnreadable { return "unreadable, like Manifest.plist" }
    if archive.isManifestMissing { return "missing, like Manifest.plist" }
    return "version \(archive.keybag.version.map(String.init) ?? "?"), \(keybagKind), "
      + "\(HumanReadable.count(archive.keybag.classKeys.count, "class key")) · \(details.classes) · \(iterationsText)"
  }

  /// The origin of the backup: "made 2026-11-20 18:04 by old-phone (iPhone15,2, iOS 18.1)".
  private var origin: String {
    let device = archive.device
    let beginning = archive.date.map { "made \(LocalTimeFormat.local($0)) by " } ?? "made by "
    let model = [device.productType, device.productVersion.map { "iOS \($0)" }].compactMap(\.self).joined(
      separator: ", ")
    return beginning + (device.name ?? "an unnamed device") + (model.isEmpty ? "" : " (\(model))")
  }

  /// The counts of the manifest's files: "listed in Manifest.db: 12 files, 3 folders in 2 domains, none missing".
  private var filesText: String {
    let layout = archive.layout.displayName
    guard let listing else {
      return "listed in \(layout), " + (findings.contains { $0.kind == .listUnreadable } ? "unreadable" : "encrypted")
    }
    var kinds = [HumanReadable.count(listing.fileCount, "file")]
    if listing.directoryCount > 0 { kinds.append(HumanReadable.count(listing.directoryCount, "folder")) }
    if listing.linkCount > 0 { kinds.append(HumanReadable.count(listing.linkCount, "link")) }
    if listing.inconsistentRowCount > 0 {
      kinds.append("\(HumanReadable.grouped(listing.inconsistentRowCount)) unreadable")
    }
    let domains = HumanReadable.count(listing.rowCountByDomain.count, "domain")
    let missing = listing.missingCount == 0 ? "none" : HumanReadable.grouped(listing.missingCount)
    return "listed in \(layout): \(HumanReadable.list(kinds)) in \(domains), \(missing) missing"
  }

  private var keybagKind: String {
    switch archive.keybag.type {
    case .backup?: "backup"
    case let type?: "type \(type.rawValue)"
    case nil: "no type"
    }
  }

  package var iterationsText: String {
    let estimate = unlockTime.map { ", \(HumanReadable.estimate($0)) per guess on this machine" } ?? ""
    // A measured time is not approximate.
    let measured = measuredUnlock.map { time in
      ", unlocked in \(HumanReadable.estimate(time).replacing("about ", with: "")) on this machine"
    }
    return archive.keybag.iterationsText + (measured ?? estimate)
  }
}
