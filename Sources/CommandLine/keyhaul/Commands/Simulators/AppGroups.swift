import KeyhaulKit
import Reports

/// Finds the access groups that `--app` selects.
enum AppGroups {
  /// Returns the selected access groups.
  ///
  /// - Parameters:
  ///   - apps: Access groups, or bundle identifiers, which are access groups without the team's prefix.
  ///   - groups: The access groups of all items.
  ///   - source: The keychain's name for errors.
  /// - Throws: `.usage` if apps of several teams have the same bundle identifier.
  static func selected(
    by apps: [String], among groups: Set<String>, of source: String
  ) throws(CommandError) -> Set<String> {
    var selectedGroups: Set<String> = []
    for app in apps {
      if groups.contains(app) {
        selectedGroups.insert(app)
        continue
      }
      let matches = groups.filter { withoutTeam($0) == app }.sorted()
      guard matches.count < 2 else {
        throw .usage(
          "--app \(app) could mean several apps in \(source)", why: "there are \(HumanReadable.list(matches))",
          try: "--app \(ShellQuoting.quote(matches[0]))")
      }
      selectedGroups.formUnion(matches)
    }
    return selectedGroups
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
