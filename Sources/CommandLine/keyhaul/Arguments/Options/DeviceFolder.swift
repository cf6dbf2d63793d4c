import KeyhaulKit

/// Finds the device folder, which contains the virtual devices.
enum DeviceFolder {
  /// Returns the path of the device folder: the value of `--home`, else of `KEYHAUL_HOME`, else a folder in the user's
  /// application data.
  ///
  /// Source of the default: XDG Base Directory Specification (a relative `XDG_DATA_HOME` is ignored).
  ///
  /// - Parameters:
  ///   - flag: The value of `--home`; `nil` if the flag is absent.
  ///   - environment: The environment variables.
  /// - Returns: The path; `nil` if neither the flag nor a variable is set.
  /// - Throws: `.usage` if `--home` is empty.
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

  /// The error of a command that needs the device folder, although none is configured.
  static var missingError: CommandError {
    .usage("there is no folder for virtual devices", why: "HOME is not set", try: "--home DIR")
  }
}

extension Session {
  /// Returns the path of the device folder, which may not exist yet.
  ///
  /// - Throws: `.usage` if no device folder is configured, or if `--home` is empty.
  func deviceFolder() throws(CommandError) -> String {
    guard let folder = try optionalDeviceFolder() else { throw DeviceFolder.missingError }
    return folder
  }

  /// Returns the path of the device folder, for a command that also works without one.
  ///
  /// - Returns: The path; `nil` if no device folder is configured.
  /// - Throws: `.usage` if `--home` is empty.
  func optionalDeviceFolder() throws(CommandError) -> String? {
    let folder = try DeviceFolder.path(flag: common.home, environment: environment)
    // A suggested command finds the same devices only with the same `--home`.
    if let folder, common.home != nil { addToSuggestions(deviceFolder: folder) }
    return folder
  }

  /// Returns whether an argument is the name of a virtual device in the device folder.
  func isDeviceName(_ argument: String) throws(CommandError) -> Bool {
    guard let folder = try optionalDeviceFolder() else { return false }
    let name = argument.hasPrefix("device:") ? argument.dropFirst("device:".count) : argument[...]
    return !name.contains("/") && PathContent(of: "\(folder)/\(name)") == .device
  }

  /// Returns the argument that names a device in a saved page, whose reader may not repeat `--home`. It is the device's
  /// path if `--home` was given, otherwise the argument that the user typed.
  func stableArgument(ofDevice argument: String) -> String {
    guard let folder = common.home, !argument.contains("/") else { return argument }
    let prefix = "device:"
    let name = argument.hasPrefix(prefix) ? String(argument.dropFirst(prefix.count)) : argument
    return "\(Self.removingTrailingSlashes(folder))/\(name)"
  }

  /// Adds `--home` with a device's parent folder to suggested commands, unless it is the default folder.
  func addHomeToSuggestions(forDeviceIn directory: String) {
    guard let folder = DestinationPath(directory)?.parent else { return }
    let defaultFolder = try? DeviceFolder.path(flag: nil, environment: environment)
    if Self.removingTrailingSlashes(folder) != defaultFolder.map(Self.removingTrailingSlashes) {
      addToSuggestions(deviceFolder: folder)
    }
  }

  private func addToSuggestions(deviceFolder: String) {
    deviceFoldersToShow.insert(Self.removingTrailingSlashes(deviceFolder))
  }

  /// Returns a path without trailing slashes, so that two spellings of the same folder are equal.
  private static func removingTrailingSlashes(_ path: String) -> String {
    var trimmed = Substring(path)
    while trimmed.utf8.count > 1, trimmed.hasSuffix("/") { trimmed = trimmed.dropLast() }
    return String(trimmed)
  }
}
