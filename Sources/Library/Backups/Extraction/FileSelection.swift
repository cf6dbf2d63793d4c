import Basics
import KeychainFormats

/// A selection of files by domain, app, and path.
package struct FileSelection: Sendable {
  private let domains: [GlobPattern]
  private let app: AppDomains?
  private let path: GlobPattern?

  /// Creates a selection. Without patterns and an app, all domains are selected.
  ///
  /// - Parameters:
  ///   - domains: The patterns of domains to select.
  ///   - app: The identifier of an app whose domains are selected as well.
  ///   - path: A pattern for the path in the domain, or `nil` to select all paths.
  package init(domains: [String], app: String?, path: String?, in archive: BackupArchive) {
    self.domains = domains.map(GlobPattern.init)
    self.app = app.map { AppDomains(of: $0, in: archive) }
    self.path = path.map(GlobPattern.init)
  }

  /// Returns whether a file is selected.
  package func contains(_ file: ListedFile) -> Bool {
    guard let domain = file.domain else { return false }
    let isInSelectedDomain =
      (domains.isEmpty && app == nil) || app?.contains(domain) == true || domains.contains { $0.matches(name: domain) }
    return isInSelectedDomain && path?.matches(name: file.relativePath) != false
  }

  /// The selection as text. Equal selections have equal texts.
  package var text: String {
    let fields: [(String, JSONValue)] = [
      ("domains", .array(domains.map(\.source).sorted().map { .string($0) })), ("app", .text(app?.identifier)),
      ("path", .text(path?.source)),
    ]
    return JSONValue.object(fields).compactText()
  }
}

/// The domains of an app, its plugins, and its groups.
///
/// A plugin's identifier begins with the identifier of its app. The entries of `Applications` list the groups of an app.
/// A group that is not listed belongs to the app whose identifier follows the group's prefix. Other groups belong to no
/// app.
package struct AppDomains: Sendable {
  package let identifier: String
  private let groups: Set<String>

  package init(of identifier: String, in archive: BackupArchive) {
    self.identifier = identifier
    let manifestGroups = InfoPlist.groups(in: archive.manifest.others["Applications"]?.dictionaryValue)
    groups = Set(manifestGroups[identifier, default: []] + (archive.computerProperties?.groups[identifier] ?? []))
  }

  package func contains(_ domain: String) -> Bool {
    if domain == "AppDomain-\(identifier)" { return true }
    if let plugin = Self.name(domain, after: "AppDomainPlugin-") { return isOfApp(plugin) }
    guard let group = Self.name(domain, after: "AppDomainGroup-") else { return false }
    return groups.contains(String(group)) || isOfApp(Self.withoutPrefix(group))
  }

  /// Returns whether an identifier is the app's identifier, or begins with it and a dot.
  private func isOfApp(_ otherIdentifier: Substring) -> Bool {
    otherIdentifier == identifier || otherIdentifier.hasPrefix(identifier + ".")
  }

  private static func name(_ domain: String, after prefix: String) -> Substring? {
    domain.hasPrefix(prefix) ? domain.dropFirst(prefix.count) : nil
  }

  /// Returns a group name without its prefix: `group.`, or the team identifier as in `ABCDE12345.`.
  private static func withoutPrefix(_ group: Substring) -> Substring {
    guard let dot = group.firstIndex(of: ".") else { return group }
    let prefix = group[..<dot]
    let isTeam = prefix.utf8.count == 10 && prefix.allSatisfy { $0.isASCII && ($0.isUppercase || $0.isNumber) }
    return prefix == "group" || isTeam ? group[group.index(after: dot)...] : group
  }
}
