package import Backups
import KeychainFormats

/// The apps that a backup lists, with their names.
package enum InstalledApps {
  /// Returns app names by identifier. If the backup has no name for an app, its name is the identifier.
  ///
  /// `Manifest.plist` lists the apps that have files in the backup. `Info.plist` lists all installed apps, with their
  /// names in the App Store. The computer, not the device, writes `Info.plist`. A damaged one is reported as a finding, and
  /// gives no names here.
  package static func names(in archive: BackupArchive) -> [String: String] {
    var names: [String: String] = [:]
    for entry in entries(in: archive) { if let identifier = entry.key.stringValue { names[identifier] = identifier } }
    guard let info = archive.computerProperties else { return names }
    for identifier in info.installedApps { names[identifier] = names[identifier] ?? identifier }
    names.merge(info.storeNames) { $1 }
    return names
  }

  /// Returns the apps of a backup: their names, their groups, and which of them the user installed.
  ///
  /// - Parameter domains: Returns the domains of the backup's files, such as `AppDomain-org.example.chat`. It is called
  ///   only if neither property list names an app, because it reads the complete manifest.
  package static func appDirectory(of archive: BackupArchive, domains: () -> [String] = { [] }) -> AppDirectory {
    var names = names(in: archive)
    let info = archive.computerProperties
    let storeApps = info?.storeApps ?? [:]
    var identifiers = listedIdentifiers(in: archive, storeApps.keys)
    if identifiers.isEmpty {
      identifiers = appIdentifiers(inDomains: domains())
      for identifier in identifiers { names[identifier] = names[identifier] ?? identifier }
    }
    var groups = InfoPlist.groups(in: archive.manifest.others["Applications"]?.dictionaryValue)
    for (identifier, infoGroups) in info?.groups ?? [:] {
      groups[identifier] = Array(Set(groups[identifier, default: []]).union(infoGroups))
    }
    let apps = identifiers.filter { !$0.hasPrefix("com.apple.") }.map { identifier in
      InstalledApp(identifier: identifier, name: storeApps[identifier]?.name, genre: storeApps[identifier]?.genre)
    }
    return AppDirectory(installed: names, apps: apps, groups: groups)
  }

  /// Returns the identifiers of the apps that `Info.plist` lists. If it lists no app, returns the apps that
  /// `Manifest.plist` lists.
  private static func listedIdentifiers(
    in archive: BackupArchive, _ storeIdentifiers: some Sequence<String>
  ) -> Set<String> {
    let infoIdentifiers = Set(archive.computerProperties?.installedApps ?? []).union(storeIdentifiers)
    if !infoIdentifiers.isEmpty { return infoIdentifiers }
    return Set(entries(in: archive).filter(isApp).compactMap(\.key.stringValue))
  }

  /// Returns the identifiers of the apps whose files have a domain of their own.
  private static func appIdentifiers(inDomains domains: [String]) -> Set<String> {
    let prefix = "AppDomain-"
    return Set(domains.lazy.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) })
  }

  private static func entries(in archive: BackupArchive) -> [PropertyDictionary.Entry] {
    Array(archive.manifest.others["Applications"]?.dictionaryValue?.entries ?? [])
  }

  /// Returns whether an entry of `Manifest.plist` describes an app, not an extension or a group.
  private static func isApp(_ entry: PropertyDictionary.Entry) -> Bool {
    guard let contentClass = entry.value.dictionaryValue?["ContainerContentClass"]?.stringValue else { return true }
    return contentClass == "Data/Application"
  }
}
