import KeyhaulKit

/// The folder of the virtual devices.
enum HomeDirectory {
  /// Returns the folder: `--home`, then `KEYHAUL_HOME`, then the platform's folder for application data.
  ///
  /// Source of the default: XDG Base Directory Specification (a relative `XDG_DATA_HOME` is ignored).
  ///
  /// - Returns: The path; `nil` if no folder is configured.
  /// - Throws: `.usage` for an empty `--home`.
  static func path(flag: String?, environment: [String: String]) throws(CommandError) -> String? {
    if let flag {
      guard !flag.isEmpty else { throw .usage("--home is empty", try: "--home DIR") }
      return flag
    }
    if let path = environment["KEYHAUL_HOME"], !path.isEmpty { return path }
    #if canImport(Darwin)
      if let home = environment["HOME"], !home.isEmpty { return home + "/Library/Application Support/keyhaul" }
    #else
      if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") { return data + "/keyhaul" }
      if let home = environment["HOME"], !home.isEmpty { return home + "/.local/share/keyhaul" }
    #endif
    return nil
  }

  /// The error of a command that needs the device folder if none is configured.
  static var missingError: CommandError {
    .usage("there is no folder for virtual devices", why: "HOME is not set", try: "--home DIR")
  }
}

extension Session {
  /// Returns the folder of the virtual devices, which may not exist yet.
  func homeDirectory() throws(CommandError) -> String {
    guard let home = try optionalHomeDirectory() else { throw HomeDirectory.missingError }
    return home
  }

  /// Returns the folder of the virtual devices, for a command that also works without one.
  ///
  /// - Returns: The path; `nil` if no folder is configured.
  func optionalHomeDirectory() throws(CommandError) -> String? {
    let home = try HomeDirectory.path(flag: common.home, environment: environment)
    if let home, common.home != nil { includeHome(home) }
    return home
  }

  /// Returns an argument for a device that stays valid in a saved page: its path if `--home` was given, otherwise the
  /// argument that the user typed.
  func stableArgument(ofDevice argument: String) -> String {
    guard let home = common.home, !argument.contains("/") else { return argument }
    let prefix = "device:"
    let name = argument.hasPrefix(prefix) ? String(argument.dropFirst(prefix.count)) : argument
    return "\(Self.folder(home))/\(name)"
  }

  /// Makes suggested commands name the folder of a device, unless the device's name is enough to find it.
  func includeHome(ofDeviceIn directory: String) {
    guard let home = DestinationPath(directory)?.parent else { return }
    let defaultHome = (try? HomeDirectory.path(flag: nil, environment: environment)) ?? nil
    if Self.folder(home) != defaultHome.map(Self.folder) { includeHome(home) }
  }

  private func includeHome(_ home: String) { homesToShow.insert(Self.folder(home)) }

  /// Returns a path without trailing slashes.
  private static func folder(_ path: String) -> String {
    var trimmed = Substring(path)
    while trimmed.utf8.count > 1, trimmed.hasSuffix("/") { trimmed = trimmed.dropLast() }
    return String(trimmed)
  }
}
