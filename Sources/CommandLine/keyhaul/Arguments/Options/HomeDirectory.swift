import KeyhaulKit

/// Where virtual devices live.
enum HomeDirectory {
  /// `--home`, then `KEYHAUL_HOME`, then the platform's place for an application's data.
  ///
  /// Source of the default: XDG Base Directory Specification (a relative `XDG_DATA_HOME` is ignored).
  ///
  /// - Returns: The path; `nil` if no directory is configured.
  /// - Throws: `.usage` for an empty `--home`.
  static func path(flag: String?, environment: [String: String]) throws(CommandFailure) -> String? {
    if let flag {
      guard !flag.isEmpty else { throw .usage("--home is empty", try: "--home DIR") }
      return flag
    }
    if let named = environment["KEYHAUL_HOME"], !named.isEmpty { return named }
    #if canImport(Darwin)
      if let home = environment["HOME"], !home.isEmpty { return home + "/Library/Application Support/keyhaul" }
    #else
      if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") { return data + "/keyhaul" }
      if let home = environment["HOME"], !home.isEmpty { return home + "/.local/share/keyhaul" }
    #endif
    return nil
  }

  /// The error of a command that needs a directory of virtual devices if none is configured.
  static var missing: CommandFailure {
    .usage("there is no folder for virtual devices", why: "HOME is not set", try: "--home DIR")
  }
}

extension Session {
  /// The directory that holds the virtual devices; it may not exist yet.
  func homeDirectory() throws(CommandFailure) -> String {
    guard let home = try homeDirectoryIfAny() else { throw HomeDirectory.missing }
    return home
  }

  /// Returns the directory of the virtual devices, for a command that also works without one.
  ///
  /// - Returns: The path; `nil` if no directory is configured.
  func homeDirectoryIfAny() throws(CommandFailure) -> String? {
    let home = try HomeDirectory.path(flag: common.home, environment: environment)
    if let home, common.home != nil { showHome(home) }
    return home
  }

  /// What a call on a page that is kept says for a device: its path, where `--home` leads to its name.
  func lastingWord(ofDevice typed: String) -> String {
    guard let home = common.home, !typed.contains("/") else { return typed }
    return "\(Self.folder(home))/\(typed.hasPrefix("device:") ? String(typed.dropFirst("device:".count)) : typed)"
  }

  /// Has the calls that are shown name the folder of a device that was found, unless its name alone leads there.
  func showHome(ofDeviceIn directory: String) {
    guard let home = DestinationPath(directory)?.parent else { return }
    let usual = (try? HomeDirectory.path(flag: nil, environment: environment)) ?? nil
    if Self.folder(home) != usual.map(Self.folder) { showHome(home) }
  }

  private func showHome(_ home: String) { shownHomes.insert(Self.folder(home)) }

  /// Without the slashes at its end.
  private static func folder(_ path: String) -> String {
    var rest = Substring(path)
    while rest.utf8.count > 1, rest.hasSuffix("/") { rest = rest.dropLast() }
    return String(rest)
  }
}
