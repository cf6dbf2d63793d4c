import KeyhaulKit

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Decides what device and archive arguments mean. Pure: the file system is asked through a closure.
///
/// A DEVICE is a name under the home directory, or a path when it has a slash. Where either is possible, a path's
/// content decides, and a name that is both a device and a file is an error.
struct ArgumentResolver {
  /// The directory of the virtual devices; `nil` if none is configured, in which case a name alone never means a
  /// device.
  let home: String?
  let content: (String) -> PathContent
  /// The names of the devices there are, to guess what a mistyped one was meant to be.
  let deviceNames: () -> [String]
  /// The backup that a path means which leads into a directory of several.
  var backup: (String) throws(CommandFailure) -> String? = { (_) throws(CommandFailure) in nil }
  /// The only backup in a folder that is not a backup itself; `nil` if there is none, or several.
  var onlyBackup: (String) throws(CommandFailure) -> String? = { (_) throws(CommandFailure) in nil }

  /// A device that must exist.
  func device(_ argument: String) throws(CommandFailure) -> KeychainPlace {
    if argument.contains("/"), !argument.hasPrefix("device:") {
      switch content(argument) {
      case .device: return .device(name: lastComponent(argument), directory: argument)
      case .absent:
        try requireText(argument)
        throw notFound("\(argument) does not exist", nil)
      case .databaseDirectory:
        throw CommandFailure(
          .notFound, "\(argument) is not a device", why: "it is the directory of a Simulator or of another keychain",
          try: "keyhaul simulator seed \(ShellQuoting.quote(argument)) --from BACKUP")
      case .file, .structured, .directory:
        throw CommandFailure(
          .notFound, "\(argument) is not a device", why: "it has no device.json", try: "keyhaul device list")
      }
    }
    let name = try deviceName(argument)
    guard home != nil else { throw HomeDirectory.missing }
    guard let directory = directory(ofDevice: name) else { throw noDevice(name) }
    return .device(name: name, directory: directory)
  }

  /// An archive to read. That it exists and is not a device is checked, what it is is for its reader to say. A file of a
  /// backup leads to the backup, and so does a folder with only one backup in it.
  func archive(_ argument: String) throws(CommandFailure) -> KeychainPlace {
    guard !argument.isEmpty else { throw .usage("the backup's name is empty", try: "the path of a backup") }
    if argument == "-" { return .standardInput }
    let found = content(argument)
    if found == .file || found == .structured, let owner = backup(holding: argument) { return .archive(path: owner) }
    switch found {
    case .file: return .archive(path: argument)
    case .directory: return .archive(path: try onlyBackup(argument) ?? argument)
    case .structured: return .dump(path: argument)
    case .databaseDirectory(let databases):
      guard databases.count == 1, let database = databases.first else {
        throw .usage(
          "\(argument) has more than one keychain", why: HumanReadable.list(databases), try: "name one of the files")
      }
      return .dump(path: database)
    case .device: return .device(name: lastComponent(argument), directory: argument)
    case .absent:
      if let directory = directory(ofDevice: argument) { return .device(name: argument, directory: directory) }
      if let path = try backup(argument) { return .archive(path: path) }
      throw CommandFailure(
        .notFound, "\(argument) does not exist", why: "no file or folder has this name",
        try: "check the path")
    }
  }

  /// The backup that a file belongs to, by its name and what stands beside it; `nil` if it is none of a backup's files.
  private func backup(holding file: String) -> String? {
    let parts = file.split(separator: "/", omittingEmptySubsequences: false)
    for depth in 1...2 where parts.count >= depth && BackupPath.isOwn(parts.suffix(depth)) {
      let parent = parts.count == depth ? "." : parts.dropLast(depth).joined(separator: "/")
      let owner = parent.isEmpty ? "/" : parent
      // A single file of such a name may come from anywhere.
      let signs = ["Manifest.plist", "Manifest.db", "Manifest.mbdb", "Status.plist"].filter { $0 != parts.last ?? "" }
      if signs.contains(where: { content("\(owner)/\($0)") != .absent }) { return owner }
    }
    return nil
  }

  /// A device or an archive, where a verb takes either.
  func deviceOrArchive(_ argument: String) throws(CommandFailure) -> KeychainPlace {
    if argument == "-" { return .standardInput }
    if argument.hasPrefix("device:") { return try device(argument) }
    if argument.contains("/") {
      return content(argument) == .device ? try device(argument) : try archive(argument)
    }
    let directory = directory(ofDevice: argument)
    let isFile = content(argument) != .absent
    switch (directory, isFile) {
    case (.some, true):
      throw .usage(
        "\(argument) is both a device and a file here", why: "the name alone is ambiguous",
        try: "device:\(argument) or ./\(argument)")
    case (let directory?, false): return .device(name: argument, directory: directory)
    case (nil, true): return content(argument) == .device ? try device("./\(argument)") : try archive(argument)
    case (nil, false):
      if let path = try backup(argument) { return .archive(path: path) }
      throw notFound(
        "there is no device or file named \(argument)", EditDistance.nearest(to: argument, among: deviceNames()))
    }
  }

  /// Returns the directory of a device in the home directory; `nil` if there is no device with this name.
  private func directory(ofDevice name: String) -> String? {
    guard let home, DeviceName.isValid(name) else { return nil }
    let directory = "\(home)/\(name)"
    return content(directory) == .device ? directory : nil
  }

  /// The name of a device that is made or deleted; it need not exist.
  func deviceName(_ argument: String) throws(CommandFailure) -> String {
    let name = argument.hasPrefix("device:") ? String(argument.dropFirst("device:".count)) : argument
    try requireText(name)
    guard DeviceName.isValid(name) else {
      throw .usage(
        "\"\(UntrustedText.shortened(name, columns: 60))\" cannot be a device's name",
        why: "a name has up to 64 letters, digits, \".\", \"_\" and \"-\", and begins with a letter or digit",
        try: "a name such as old-phone")
    }
    return name
  }

  /// Refuses bytes that are no UTF-8, which an argument has lost by now: no other name may be meant in their place.
  private func requireText(_ name: String) throws(CommandFailure) {
    guard name.unicodeScalars.contains("\u{FFFD}") else { return }
    throw .usage(
      "\"\(UntrustedText.shortened(name, columns: 60))\" cannot be a device's name",
      why: "it contains invalid UTF-8 or the replacement character U+FFFD; Keyhaul never gives a device such a name",
      try: "rename its folder with mv and use the new name, or remove the folder with rm -r")
  }

  private func noDevice(_ name: String) -> CommandFailure {
    notFound("there is no device named \(name)", EditDistance.nearest(to: name, among: deviceNames()))
  }

  private func notFound(_ message: String, _ near: String?) -> CommandFailure {
    let place = home.map { "Keyhaul looks for devices in \($0)" } ?? "HOME is not set, so Keyhaul looks for no devices"
    return CommandFailure(
      .notFound, message, why: near.map { "\"\($0)\" is similar" } ?? place,
      try: near ?? (home == nil ? "check the path, or --home DIR" : "keyhaul device list"))
  }

  private func lastComponent(_ path: String) -> String {
    path.split(separator: "/").last { $0 != "." }.map(String.init) ?? path
  }
}

extension ArgumentResolver {
  /// Asks the file system.
  ///
  /// - Parameter home: The directory of the virtual devices; `nil` if none is configured.
  init(home: String?) {
    self.init(
      home: home, content: PathContent.init(of:),
      deviceNames: {
        guard let home else { return [] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: home)) ?? []
        return names.filter { DeviceName.isValid($0) && PathContent(of: "\(home)/\($0)") == .device }.sorted()
      },
      backup: { (path) throws(CommandFailure) in try BackupChoice.path(path, backups: BackupChoice.backups) },
      onlyBackup: { (path) throws(CommandFailure) in
        guard case .one(let backup) = try BackupPlaces.content(of: path) else { return nil }
        return backup
      })
  }
}
