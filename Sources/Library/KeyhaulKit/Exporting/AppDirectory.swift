package import Backups
import Basics
package import VirtualDevice

/// Which app an item belongs to, as far as its access group and a list of apps say.
package struct AppName: Sendable, Hashable {
  /// How much is known of the app.
  package enum Kind: Sendable, Hashable {
    /// An app, by the name or the identifier that a list of apps gives it.
    case app
    /// An identifier that stands in the access group, of an app that no list knows.
    case identifier
    /// An access group that is not an app's, such as the system's.
    case group
    /// The item opens and names no access group, as those of iOS 4, of which nothing but the secret is stored.
    case unnamed
    /// The item is sealed, and its access group with it.
    case unknown
  }

  /// How much is known of the app.
  package let kind: Kind
  /// Hostile: it comes out of a backup. Empty where it is unnamed or unknown.
  package let text: String

  /// Whether anything says whose the item is.
  package var isKnown: Bool {
    switch kind {
    case .app, .identifier, .group: true
    case .unnamed, .unknown: false
    }
  }

  /// Whether it is an access group that only Apple's own code can be in: any other begins with its team's prefix, or with
  /// "group.".
  ///
  /// Source: Apple, "Sharing access to keychain items among a collection of apps".
  package var isApples: Bool {
    kind == .group && (text == "apple" || text == "lockdown-identities" || text.hasPrefix("com.apple."))
  }

  /// What reports call all of these together.
  package static let applesWords = "iOS, Apple\u{2019}s apps"

  /// As reports say it.
  package var words: String {
    switch kind {
    case .app, .identifier: text
    case .group: isApples ? "iOS (group \(text))" : "group \(text)"
    case .unnamed: "(names no app)"
    case .unknown: "(encrypted)"
    }
  }
}

/// The apps of a device or a backup, to name items by.
///
/// Nothing is guessed: an app is named where a list knows it, else by the identifier in the access group, else the group
/// is shown as it is.
public struct AppDirectory: Sendable {
  private var namesByGroup: [String: [String]] = [:]
  private var namesByIdentifier: [String: String] = [:]

  /// The apps of a virtual device, which say their groups themselves.
  package init(_ apps: [DeviceApp]) {
    for app in apps { for group in app.accessGroups { namesByGroup[group, default: []].append(app.name) } }
  }

  /// The apps that a backup lists.
  ///
  /// - Parameter names: What the apps are called, by their identifiers; where a backup knows no more, the identifier.
  package init(installed names: [String: String]) { namesByIdentifier = names }

  /// The identifiers of a virtual device's apps, as far as their access groups name one.
  package static func identifiers(of apps: [DeviceApp]) -> [String] {
    Set(apps.flatMap(\.accessGroups).compactMap(identifier)).sorted()
  }

  /// Returns the app that an item belongs to, as far as its access group says.
  package func app(of identity: ItemIdentity) -> AppName {
    guard let group = identity.accessGroup, !group.isEmpty else {
      return AppName(kind: identity.isSealed ? .unknown : .unnamed, text: "")
    }
    if let names = namesByGroup[group] { return AppName(kind: .app, text: names.sorted().joined(separator: ", ")) }
    guard let identifier = Self.identifier(in: group) else { return AppName(kind: .group, text: group) }
    if let name = namesByIdentifier[identifier] { return AppName(kind: .app, text: name) }
    return AppName(kind: .identifier, text: identifier)
  }

  /// What stands behind the team's prefix of ten characters: `ABCDE12345.org.example.chat` is `org.example.chat`.
  ///
  /// Source: Apple, "Sharing access to keychain items among a collection of apps".
  static func identifier(in group: String) -> String? {
    let parts = group.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].utf8.count == 10, !parts[1].isEmpty,
      parts[0].utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) })
    else { return nil }
    return String(parts[1])
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
    for entry in archive.manifest.others["Applications"]?.dictionaryValue?.entries ?? [] {
      if let identifier = entry.key.stringValue { names[identifier] = identifier }
    }
    guard let info = archive.computerProperties else { return names }
    for identifier in info.installed { names[identifier] = names[identifier] ?? identifier }
    names.merge(info.storeNames) { $1 }
    return names
  }
}
