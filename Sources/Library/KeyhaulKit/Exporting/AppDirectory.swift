package import Backups
import Basics
import KeychainFormats
package import VirtualDevice

/// The app that an item belongs to, according to its access group and a list of apps.
package struct AppName: Sendable, Hashable {
  /// The kind of knowledge about the app.
  package enum Kind: Sendable, Hashable {
    /// An app, by the name or the identifier that a list of apps gives it.
    case app
    /// An access group of a team, which is not the identifier of an app in the list. Any app of the team may use it.
    case identifier
    /// An access group that is not an app's, such as the system's.
    case group
    /// The decrypted item has no access group. This is the case for items of iOS 4, which consist only of a secret.
    case unnamed
    /// The item is encrypted, including its access group.
    case unknown
  }

  /// The kind of knowledge about the app.
  package let kind: Kind
  /// Untrusted, because it comes from a backup. Empty if the app is unnamed or unknown.
  package let text: String
  /// The team whose prefix the access group has; `nil` unless the kind is `identifier`.
  package var team: String?

  /// Whether the item's owner is known.
  package var isKnown: Bool {
    switch kind {
    case .app, .identifier, .group: true
    case .unnamed, .unknown: false
    }
  }

  /// Whether it is an access group that only Apple's own code can be in. All other groups begin with a team's prefix or
  /// with "group.".
  ///
  /// Source: Apple, "Sharing access to keychain items among a collection of apps".
  package var isAppleGroup: Bool {
    kind == .group && (text == "apple" || text == "lockdown-identities" || text.hasPrefix("com.apple."))
  }

  /// The common name of these groups in reports.
  package static let appleGroupDescription = "iOS, Apple\u{2019}s apps"

  /// The name in reports.
  package var displayName: String {
    switch kind {
    case .app: text
    case .identifier: team.map { "\(text) (team \($0))" } ?? text
    case .group: isAppleGroup ? "iOS (group \(text))" : "group \(text)"
    case .unnamed: "(names no app)"
    case .unknown: "(encrypted)"
    }
  }
}

/// The apps of a device or a backup, for naming the owners of items.
///
/// An app is named only if its access group proves it: the group is the app's own identifier after a team's prefix, or
/// a group that the app's entry lists. Otherwise the group is shown with its team.
///
/// Source: Apple, "Sharing access to keychain items among a collection of apps" (the application identifier is an
/// access group of its app).
public struct AppDirectory: Sendable {
  private var namesByGroup: [String: [String]] = [:]
  private var namesByIdentifier: [String: String] = [:]
  /// The installed apps that are not Apple's, by name.
  package private(set) var installed: [InstalledApp] = []

  /// Creates a directory of a virtual device's apps, which list their groups.
  package init(_ apps: [DeviceApp]) {
    for app in apps { for group in app.accessGroups { namesByGroup[group, default: []].append(app.name) } }
    installed = InstalledApp.sorted(
      apps.map { app in
        let identifier = app.accessGroups.lazy.compactMap(Self.identifier).first ?? app.name
        return InstalledApp(identifier: identifier, name: app.name, genre: nil)
      })
  }

  /// Creates a directory of the apps that a backup lists.
  ///
  /// - Parameters:
  ///   - names: The names of the apps by their identifiers; the identifier if no name is known.
  ///   - apps: The apps that the user installed.
  ///   - groups: The app groups that an app's entry names, by the app's identifier.
  package init(
    installed names: [String: String], apps: [InstalledApp] = [], groups: [String: [String]] = [:]
  ) {
    namesByIdentifier = names
    installed = InstalledApp.sorted(apps)
    for (identifier, groups) in groups {
      for group in groups { namesByGroup[group, default: []].append(names[identifier] ?? identifier) }
    }
  }

  /// Returns the identifiers of a virtual device's apps that are in their access groups.
  package static func identifiers(of apps: [DeviceApp]) -> [String] {
    Set(apps.flatMap(\.accessGroups).compactMap(identifier)).sorted()
  }

  /// Returns the app that an item belongs to, according to its access group.
  package func app(of identity: ItemDescriptor) -> AppName {
    guard let group = identity.accessGroup, !group.isEmpty else {
      return AppName(kind: identity.isEncrypted ? .unknown : .unnamed, text: "")
    }
    if let names = namesByGroup[group] { return AppName(kind: .app, text: names.sorted().joined(separator: ", ")) }
    guard let identifier = Self.identifier(in: group) else { return AppName(kind: .group, text: group) }
    if let name = namesByIdentifier[identifier] { return AppName(kind: .app, text: name) }
    return AppName(kind: .identifier, text: identifier, team: String(group.prefix(Self.teamLength)))
  }

  /// The number of characters of a team's identifier.
  private static let teamLength = 10

  /// Returns the part after the team's prefix: for `ABCDE12345.org.example.chat`, it is `org.example.chat`.
  ///
  /// Source: Apple, "Sharing access to keychain items among a collection of apps".
  static func identifier(in group: String) -> String? {
    let parts = group.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, isTeam(parts[0]), !parts[1].isEmpty else { return nil }
    return String(parts[1])
  }

  /// Returns whether a text is a team's identifier: ten ASCII digits and capital letters.
  private static func isTeam(_ text: Substring) -> Bool {
    text.utf8.count == teamLength
      && text.unicodeScalars.allSatisfy { ("0"..."9").contains($0) || ("A"..."Z").contains($0) }
  }
}

/// The apps that a backup lists, with their names.
package enum InstalledApps {
  /// Returns app names by identifier. If the backup has no name for an app, its name is the identifier.
  ///
  /// `Manifest.plist` lists the apps that have files in the backup. `Info.plist` lists all installed apps, with their
  /// names in the App Store. The computer writes `Info.plist`; opening the backup reports one that cannot be parsed.
  package static func names(in archive: BackupArchive) -> [String: String] {
    var names: [String: String] = [:]
    for entry in entries(in: archive) { if let identifier = entry.key.stringValue { names[identifier] = identifier } }
    guard let info = archive.computerProperties else { return names }
    for identifier in info.installed { names[identifier] = names[identifier] ?? identifier }
    names.merge(info.storeNames) { $1 }
    return names
  }

  /// Returns the apps of a backup: their names, their groups, and which of them the user installed.
  ///
  /// - Parameter domains: Returns the domains of the backup's files, such as `AppDomain-org.example.chat`. It is called
  ///   only if neither property list names an app, because it reads the complete manifest.
  package static func directory(of archive: BackupArchive, domains: () -> [String] = { [] }) -> AppDirectory {
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

  /// Returns the identifiers of the apps that `Info.plist` lists or, if it lists none, those that `Manifest.plist`
  /// lists.
  private static func listedIdentifiers(
    in archive: BackupArchive, _ storeIdentifiers: some Sequence<String>
  ) -> Set<String> {
    let infoIdentifiers = Set(archive.computerProperties?.installed ?? []).union(storeIdentifiers)
    if !infoIdentifiers.isEmpty { return infoIdentifiers }
    return Set(entries(in: archive).filter(isApp).compactMap(\.key.stringValue))
  }

  /// Returns the identifiers of the apps that have a domain of files.
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
