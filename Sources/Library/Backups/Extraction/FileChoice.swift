import Basics
import KeychainFormats

/// Which files of a backup are wanted: of domains, of an app, by their paths.
package struct FileChoice: Sendable {
  private let domains: [ItemPattern]
  private let app: AppDomains?
  private let path: ItemPattern?

  /// - Parameters:
  ///   - domains: Patterns, of which one has to fit; with an app and without any, the app's alone.
  ///   - app: The identifier of an app.
  ///   - path: A pattern that the path in the domain has to fit as well.
  package init(domains: [String], app: String?, path: String?, in archive: BackupArchive) {
    self.domains = domains.map(ItemPattern.init)
    self.app = app.map { AppDomains(of: $0, in: archive) }
    self.path = path.map(ItemPattern.init)
  }

  package func admits(_ file: ListedFile) -> Bool {
    guard let domain = file.domain else { return false }
    let isOfDomain =
      (domains.isEmpty && app == nil) || app?.contains(domain) == true || domains.contains { $0.matches(name: domain) }
    return isOfDomain && path?.matches(name: file.relativePath) != false
  }

  /// The choice as a text: the same one is the same text.
  package var text: String {
    let fields: [(String, JSONValue)] = [
      ("domains", .array(domains.map(\.source).sorted().map { .string($0) })), ("app", .text(app?.identifier)),
      ("path", .text(path?.source)),
    ]
    return JSONValue.object(fields).compactText()
  }
}

/// The domains of an app: its own, those of its plugins, and those of its groups.
///
/// A plugin's identifier begins with its app's. Which groups an app has the entries of `Applications` say, where they
/// name any; otherwise a group is an app's whose identifier follows the group's prefix. A group with a name of its own
/// is nobody's.
package struct AppDomains: Sendable {
  package let identifier: String
  private let groups: Set<String>

  package init(of identifier: String, in archive: BackupArchive) {
    self.identifier = identifier
    let listed = ComputerProperties.groups(in: archive.manifest.others["Applications"]?.dictionaryValue)
    groups = Set(listed[identifier, default: []] + (archive.computerProperties?.groups[identifier] ?? []))
  }

  package func contains(_ domain: String) -> Bool {
    if domain == "AppDomain-\(identifier)" { return true }
    if let plugin = Self.name(domain, after: "AppDomainPlugin-") { return isOwn(plugin) }
    guard let group = Self.name(domain, after: "AppDomainGroup-") else { return false }
    return groups.contains(String(group)) || isOwn(Self.withoutPrefix(group))
  }

  private func isOwn(_ name: Substring) -> Bool { name == identifier || name.hasPrefix(identifier + ".") }

  private static func name(_ domain: String, after prefix: String) -> Substring? {
    domain.hasPrefix(prefix) ? domain.dropFirst(prefix.count) : nil
  }

  /// A group's name without `group.` or the team's ten letters and digits.
  private static func withoutPrefix(_ group: Substring) -> Substring {
    guard let dot = group.firstIndex(of: ".") else { return group }
    let prefix = group[..<dot]
    let isTeam = prefix.utf8.count == 10 && prefix.allSatisfy { $0.isASCII && ($0.isUppercase || $0.isNumber) }
    return prefix == "group" || isTeam ? group[group.index(after: dot)...] : group
  }
}
