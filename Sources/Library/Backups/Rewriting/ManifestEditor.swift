import Basics
import KeychainFormats

/// A `Manifest.plist` with individual values replaced. All other values stay in their order, and XML stays XML.
struct ManifestEditor {
  private let root: PropertyDictionary
  private let isXML: Bool

  init(_ stored: [UInt8]) throws(KeyhaulError) {
    root = try rootDictionary(of: stored, in: MetadataFile.manifest.path)
    isXML = XMLPlist.isXML(stored)
  }

  /// Returns the manifest with a different keybag.
  func replacing(keybag: Keybag) throws(KeyhaulError) -> [UInt8] {
    var changed = root
    changed["BackupKeyBag"] = .data(keybag.serialized())
    return try encoded(changed)
  }

  /// Returns the manifest with a different keybag, for a backup whose files were encrypted or decrypted.
  ///
  /// - Parameter manifestKey: The key of the encrypted file list, or `nil` if the backup has no password.
  func replacing(keybag: Keybag, manifestKey: ClassWrappedKey?) throws(KeyhaulError) -> [UInt8] {
    var changed = root
    changed["BackupKeyBag"] = .data(keybag.serialized())
    changed["IsEncrypted"] = .boolean(manifestKey != nil)
    changed["ManifestKey"] = manifestKey.map { .data($0.serialized()) }
    return try encoded(changed)
  }

  /// Returns the manifest of a decrypted copy. It has no key of the file list, but keeps the keybag, because the keychain
  /// items need it.
  func decrypted() throws(KeyhaulError) -> [UInt8] {
    var changed = root
    changed["IsEncrypted"] = .boolean(false)
    changed["ManifestKey"] = nil
    changed[BackupManifest.copyKey] = .boolean(true)
    return try encoded(changed)
  }

  private func encoded(_ root: PropertyDictionary) throws(KeyhaulError) -> [UInt8] {
    guard isXML else { return try encode(root, as: MetadataFile.manifest.path) }
    do throws(FormatError) {
      return try XMLPlist.encode(.dictionary(root))
    } catch {
      throw KeyhaulError(.unwritable, "\(MetadataFile.manifest.path): \(error.reason)")
    }
  }
}
