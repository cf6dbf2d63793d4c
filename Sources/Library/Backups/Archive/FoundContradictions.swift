import Basics
import KeychainCrypto
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
    if manifest.manifestKey != nil { facts.append("the key of an encrypted manifest (ManifestKey)") }
    if manifest.keybag.secondRound != nil { facts.append("a keybag with a password's iteration count (DPIC)") }
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
        "\(keys(bound, "is", "are")) wrapped with a device's hardware key. No device does this in a backup with a "
          + "password, and it makes migratable items appear to stay behind")
    }
    if !bare.isEmpty {
      facts.append("\(keys(bare, "is", "are")) not wrapped with the password, although every device wraps them")
    }
    return facts.isEmpty ? nil : facts.joined(separator: "; ")
  }

  private static func keys(_ classes: [KeyClass], _ one: String, _ several: String) -> String {
    let names = Amounts.list(classes.map { String($0.rawValue) })
    return classes.count == 1
      ? "the key of class \(names) in its keybag \(one)" : "the keys of classes \(names) in its keybag \(several)"
  }
}
