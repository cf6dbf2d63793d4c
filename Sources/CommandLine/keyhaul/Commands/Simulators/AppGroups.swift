import KeyhaulKit
import Reports

/// The access groups that `--app` selects.
struct AppGroups {
  /// The selected access groups of the apps.
  private(set) var groups: Set<String> = []
  /// The first app that matches no access group, or `nil` if every app matches one.
  private(set) var unmatchedApp: String?

  /// Selects access groups.
  ///
  /// - Parameters:
  ///   - apps: Access groups, or bundle identifiers, which are access groups without the team's prefix.
  ///   - allGroups: The access groups of all items.
  ///   - source: The keychain's name for errors.
  /// - Throws: `.usage` if apps of several teams have the same bundle identifier.
  init(
    selectedBy apps: [String], among allGroups: Set<String>, of source: String
  ) throws(CommandError) {
    for app in apps {
      if allGroups.contains(app) {
        groups.insert(app)
        continue
      }
      let matches = allGroups.filter { Self.withoutTeam($0) == app }.sorted()
      guard matches.count < 2 else {
        throw .usage(
          "--app \(app) could mean several apps in \(source)", why: "there are \(HumanReadable.list(matches))",
          try: "--app \(ShellQuoting.quote(matches[0]))")
      }
      if matches.isEmpty, unmatchedApp == nil { unmatchedApp = app }
      groups.formUnion(matches)
    }
  }

  /// Returns the access group or bundle identifier that is most similar to `app`, which was not found; `nil` if no name is
  /// similar.
  static func nearest(to app: String, among groups: Set<String>) -> String? {
    EditDistance.nearest(to: app, among: (groups.union(groups.compactMap(withoutTeam))).sorted())
  }

  /// Returns "org.example.chat" for "ABCDE12345.org.example.chat"; `nil` if there is no team prefix. The prefix has ten
  /// capital letters and digits. Source: Apple, "Technical Note TN2415: Entitlements Troubleshooting".
  private static func withoutTeam(_ group: String) -> String? {
    let parts = group.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let digitsAndCapitals = [UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z")]
    guard parts.count == 2, parts[0].utf8.count == 10,
      parts[0].utf8.allSatisfy({ byte in digitsAndCapitals.contains { $0.contains(byte) } })
    else { return nil }
    return String(parts[1])
  }
}
