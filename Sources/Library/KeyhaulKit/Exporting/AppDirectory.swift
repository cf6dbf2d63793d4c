package import Backups
import Basics
import KeychainFormats
package import VirtualDevice

/// The apps of a device or a backup, for naming the owners of items.
///
/// An app is named as an item's owner only if the item's access group proves it. This is the case for two groups: a
/// team's prefix with the app's own identifier, and a group that the device or the backup lists for the app. Any other
/// group is shown with its team.
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
  ///   - names: The names of the apps by their identifiers. An app without a known name has its identifier as its name.
  ///   - apps: The apps that the user installed.
  ///   - groups: The app groups that the backup lists for an app, by the app's identifier.
  package init(
    installed names: [String: String], apps: [InstalledApp] = [], groups: [String: [String]] = [:]
  ) {
    namesByIdentifier = names
    installed = InstalledApp.sorted(apps)
    for (identifier, groups) in groups {
      for group in groups { namesByGroup[group, default: []].append(names[identifier] ?? identifier) }
    }
  }

  /// Returns the app identifiers that the access groups of a virtual device's apps contain.
  package static func identifiers(of apps: [DeviceApp]) -> [String] {
    Set(apps.flatMap(\.accessGroups).compactMap(identifier)).sorted()
  }

  /// Returns the owner of an item, according to its access group.
  package func app(of identity: ItemDescriptor) -> AppName {
    guard let group = identity.accessGroup, !group.isEmpty else {
      return AppName(kind: identity.isEncrypted ? .encrypted : .withoutGroup, text: "")
    }
    if let names = namesByGroup[group] { return AppName(kind: .app, text: names.sorted().joined(separator: ", ")) }
    guard let identifier = Self.identifier(in: group) else { return AppName(kind: .group, text: group) }
    if let name = namesByIdentifier[identifier] { return AppName(kind: .app, text: name) }
    return AppName(kind: .teamGroup, text: identifier, team: String(group.prefix(Self.teamLength)))
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

  /// Returns whether a string is a team's identifier: ten ASCII digits and capital letters.
  private static func isTeam(_ string: Substring) -> Bool {
    string.utf8.count == teamLength
      && string.unicodeScalars.allSatisfy { ("0"..."9").contains($0) || ("A"..."Z").contains($0) }
  }
}
