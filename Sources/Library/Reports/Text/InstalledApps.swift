package import KeyhaulKit

/// What a backup says of the apps of its device.
package enum InstalledApps {
  /// Names by identifier; the identifier itself where the backup knows no more.
  ///
  /// `Manifest.plist` lists the apps that have files in the backup, `Info.plist` all that were installed, with what the
  /// store calls them. The computer writes the second: one that does not parse has been told of.
  package static func names(in archive: BackupArchive) -> [String: String] {
    var names: [String: String] = [:]
    for entry in archive.manifest.others["Applications"]?.dictionaryValue?.entries ?? [] {
      if let identifier = entry.key.stringValue { names[identifier] = identifier }
    }
    guard let info = archive.computerProperties else { return names }
    for identifier in info.installed { names[identifier] = names[identifier] ?? identifier }
    names.merge(info.storeNames) { $1 }
    return names
  }
}
