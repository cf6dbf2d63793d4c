package import CommandSession

/// Where virtual devices live.
enum HomeDirectory {
  /// `--home`, then `KEYHAUL_HOME`, then the platform's place for an application's data.
  ///
  /// Source of the default: XDG Base Directory Specification (a relative `XDG_DATA_HOME` is ignored).
  package static func path(flag: String?, environment: [String: String]) throws(CommandFailure) -> String {
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
    throw .usage("there is no place for virtual devices", why: "HOME is not set", try: "--home DIR")
  }
}

extension Session {
  /// The directory that holds the virtual devices; it may not exist yet.
  package func homeDirectory() throws(CommandFailure) -> String {
    try HomeDirectory.path(flag: common.home, environment: environment)
  }
}
