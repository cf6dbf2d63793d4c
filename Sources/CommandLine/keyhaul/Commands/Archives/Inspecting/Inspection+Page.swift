import KeyhaulKit
import Reports

extension Inspection {
  /// All that is known of the archive as one HTML file.
  ///
  /// - Parameter argument: What the person types for it; `nil` where it came from a stream.
  func page(argument: String?) -> InspectionPage {
    var facts = InspectionPage.Facts(
      name: name, argument: argument, device: archive.device, made: archive.date,
      layout: archive.layout, digest: archive.digest, isEncrypted: archive.isEncrypted,
      hasKeychain: archive.hasKeychain, keybag: archive.keybag, storedFiles: (files.count, files.byteCount))
    facts.unlockTime = unlockTime
    facts.measuredUnlock = measuredUnlock
    facts.findings = findings
    facts.sealed = SealedItems(opened).groups
    let about = BackupFacts(archive)
    facts.about = [about.device, about.making(DateWords.words)]
    facts.maker = maker
    facts.apps = AppDirectory(installed: InstalledApps.names(in: archive))
    if let listing, let tree {
      facts.files = InspectionPage.Files(listing, branches: tree.root.children)
    }
    facts.hiddenKeychain = opened?.hiddenKeychain
    facts.items =
      facts.hiddenKeychain != nil
      ? nil
      : opened?.items.map { item in
        InspectionPage.Item(
          index: item.index, identity: item.item.map(ItemIdentity.init) ?? ItemIdentity(sealed: item.kind),
          protection: item.protection, reason: reason(of: item), isSecretOnly: item.isSecretOnly)
      }
    return InspectionPage(facts, program: ProgramVersion.signature)
  }
}
