import KeyhaulKit

extension VerificationReport {
  /// A clause that lists the faults: "1 item is lost in this copy and 2 files are missing".
  package var faultSummary: String {
    if verification.isUnopened { return "it cannot be opened" }
    let metadataClauses = propertyListClauses + structureClauses + keybagClauses + fileListClauses
    return HumanReadable.list(metadataClauses + keychainClauses + fileClauses)
  }

  /// The clauses about an unfinished backup, and about false claims in its property lists.
  private var propertyListClauses: [String] {
    var clauses: [String] = []
    let kinds = verification.faults.map(\.kind)
    if kinds.contains(.unfinished) { clauses.append("the device never finished it") }
    if kinds.contains(.falseClaim) { clauses.append("it says that it is encrypted, but it is not") }
    if kinds.contains(.passwordDenied) { clauses.append("it says that it has no password, but it was made with one") }
    return clauses
  }

  /// The clauses about the property lists that are missing, incomplete or unreadable.
  private var structureClauses: [String] {
    var clauses: [String] = []
    let damagedPropertyLists = verification.faults.filter {
      $0.check == .structure && $0.kind == .structureDamaged
    }.compactMap(\.file)
    // If the version is missing, Manifest.plist was read unless there is also a `manifestUnreadable` finding.
    let lacksVersion =
      verification.findings.contains { $0.kind == .versionMissing }
      && !verification.findings.contains { $0.kind == .manifestUnreadable }
    // Manifest.plist is not listed as unreadable if one of the next two clauses names it.
    let hasManifestClause = lacksManifest || lacksVersion
    let unreadablePropertyLists = damagedPropertyLists.filter { $0 != "Manifest.plist" || !hasManifestClause }
    if lacksManifest { clauses.append("its Manifest.plist is missing") }
    if lacksVersion { clauses.append("its Manifest.plist does not state its version") }
    if !unreadablePropertyLists.isEmpty {
      clauses.append("its \(HumanReadable.list(unreadablePropertyLists)) cannot be read")
    }
    return clauses
  }

  /// Whether Manifest.plist is missing.
  private var lacksManifest: Bool { verification.findings.contains(.manifestMissing) }

  private var keybagClauses: [String] {
    var clauses: [String] = []
    // The wrap with the device key binds a class key to its device.
    let missingHardwareLayerCount = verification.faults.count { $0.kind == .hardwareLayerMissing }
    if missingHardwareLayerCount > 0 {
      clauses.append("its keybag contains keychain keys that are not bound to a device")
    }
    if !lacksManifest, verification.faultCount[.keybag, default: 0] > missingHardwareLayerCount {
      clauses.append("its keybag differs from what was written")
    }
    return clauses
  }

  /// The clauses about Manifest.db or Manifest.mbdb, which lists the backup's files.
  private var fileListClauses: [String] {
    var clauses: [String] = []
    if verification.findings.contains(where: { $0.kind == .listJournalUnread }) {
      clauses.append("a journal or log next to its manifest was not read, although it may change the manifest")
    }
    if verification.faultCount[.database] != nil { clauses.append("its manifest differs from what was written") }
    return clauses
  }

  /// The clauses about the keychain and its items.
  private var keychainClauses: [String] {
    var clauses: [String] = []
    let faultCounts = verification.faultCount
    // In a layout that Keyhaul does not read, the keychain cannot be found, so this clause replaces the keychain's.
    if verification.hasFilesByDomain {
      clauses.append("its files are under their own names, in a layout that Keyhaul does not read")
    } else if verification.isKeychainLost {
      clauses.append(
        faultCounts[.database] == nil
          ? "its keychain is lost in this copy"
          : "its keychain cannot be found through its manifest")
    } else if verification.isKeychainRefused {
      clauses.append("its keychain does not name the backup's keybag, so it cannot be restored")
    } else if faultCounts[.keychain] != nil {
      clauses.append("its keychain file differs from what was written")
    }
    if let lostCount = verification.items?.damaged, lostCount > 0 {
      clauses.append("\(HumanReadable.count(lostCount, "item")) \(lostCount == 1 ? "is" : "are") lost in this copy")
    }
    return clauses
  }

  /// The clauses about the files and the seal.
  private var fileClauses: [String] {
    var clauses: [String] = []
    let missingCount = verification.missingCount
    let damagedCount = verification.faultCount[.files, default: 0] - missingCount
    if damagedCount > 0 {
      clauses.append("\(HumanReadable.count(damagedCount, "file")) \(damagedCount == 1 ? "is" : "are") damaged")
    }
    if missingCount > 0, !verification.hasFilesByDomain {
      clauses.append("\(HumanReadable.count(missingCount, "file")) \(missingCount == 1 ? "is" : "are") missing")
    }
    if let clause = verification.sealClause { clauses.append(clause) }
    return clauses
  }

  /// A sentence about the intact parts of a damaged keychain.
  var intactPartsSentence: String {
    guard let items = verification.items, items.readable > 0, !verification.isKeychainLost,
      !verification.isKeychainRefused,
      items.damaged > 0 || verification.faultCount[.keychain] != nil
    else { return "" }
    let (subject, pronoun) =
      items.readable == 1
      ? ("The item that can be decrypted is", "it")
      : ("The \(HumanReadable.grouped(items.readable)) items that can be decrypted are", "them")
    return " \(subject) unchanged: export saves \(pronoun)."
  }
}
