import DataProtection
import KeychainFormats

/// In what a manifest claims less protection than its own parts show.
struct FoundContradictions {
  let findings: [ArchiveFinding]

  /// - Parameter isEncrypted: Whether what is stored is encrypted, or the manifest says so.
  init(in manifest: BackupManifest, isEncrypted: Bool) {
    guard !isEncrypted else {
      findings = Self.unusualWraps(of: manifest.keybag).map { [.wrapsUnusual(reason: $0)] } ?? []
      return
    }
    var facts: [String] = []
    if manifest.manifestKey != nil { facts.append("the key of an encrypted list of files (ManifestKey)") }
    if manifest.keybag.secondRound != nil { facts.append("a keybag with the rounds of a password (DPIC)") }
    findings =
      facts.isEmpty
      ? []
      : [.passwordDenied(reason: "it says that it is not encrypted, and holds \(Amounts.list(facts))")]
  }

  /// What of the wraps of class keys in a backup with a password is as no device makes it, but for the hardware's layer
  /// where that is missing: such keys are told of by what they open.
  private static func unusualWraps(of keybag: Keybag) -> String? {
    let bound = BackupKeybag.classesWithNeedlessHardware(of: keybag)
    let bare = BackupKeybag.classesWithoutPassword(of: keybag)
    var facts: [String] = []
    if !bound.isEmpty {
      facts.append(
        "\(keys(bound, "is", "are")) wrapped with the hardware of a device, as no device wraps \(bound.count == 1 ? "it" : "them") "
          + "in a backup with a password: what moves would seem to stay")
    }
    if !bare.isEmpty {
      facts.append("\(keys(bare, "is", "are")) not wrapped with the password, as every device wraps them")
    }
    return facts.isEmpty ? nil : facts.joined(separator: "; ")
  }

  private static func keys(_ classes: [KeyClass], _ one: String, _ several: String) -> String {
    let names = Amounts.list(classes.map { String($0.rawValue) })
    return classes.count == 1
      ? "the key of class \(names) in its keybag \(one)" : "the keys of classes \(names) in its keybag \(several)"
  }
}
