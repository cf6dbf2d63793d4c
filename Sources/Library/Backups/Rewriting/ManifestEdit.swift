import Basics
import KeychainFormats

/// A stored `Manifest.plist` of which single values are replaced. Every other value stays, in its order; what was XML
/// stays XML.
struct ManifestEdit {
  private let root: PropertyDictionary
  private let isXML: Bool

  init(_ stored: [UInt8]) throws(BackupArchiveError) {
    root = try rootDictionary(of: stored, in: StoredPart.manifest.path)
    isXML = XMLPlist.isXML(stored)
  }

  func replacing(keybag: Keybag) throws(BackupArchiveError) -> [UInt8] {
    var changed = root
    changed["BackupKeyBag"] = .data(keybag.serialized())
    return try encoded(changed)
  }

  /// - Parameter manifestKey: Of the encrypted list of files; `nil` for a backup without a password.
  func replacing(keybag: Keybag, manifestKey: ClassWrappedKey?) throws(BackupArchiveError) -> [UInt8] {
    var changed = root
    changed["BackupKeyBag"] = .data(keybag.serialized())
    changed["IsEncrypted"] = .boolean(manifestKey != nil)
    changed["ManifestKey"] = manifestKey.map { .data($0.serialized()) }
    return try encoded(changed)
  }

  /// As of a decrypted copy: no key of a list, and the keybag as it was, which opens the keychain's items.
  func decrypted() throws(BackupArchiveError) -> [UInt8] {
    var changed = root
    changed["IsEncrypted"] = .boolean(false)
    changed["ManifestKey"] = nil
    changed[BackupManifest.copyKey] = .boolean(true)
    return try encoded(changed)
  }

  private func encoded(_ root: PropertyDictionary) throws(BackupArchiveError) -> [UInt8] {
    guard isXML else { return try encode(root, as: StoredPart.manifest.path) }
    do throws(FormatError) {
      return try XMLPlist.encode(.dictionary(root))
    } catch {
      throw BackupArchiveError(.unwritable, "\(StoredPart.manifest.path): \(error.reason)")
    }
  }
}
