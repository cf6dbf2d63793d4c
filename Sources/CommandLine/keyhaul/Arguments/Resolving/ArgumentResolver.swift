import KeyhaulKit

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Finds the devices and backups that arguments name.
///
/// - A device is named by its name in the device folder, also with the prefix `device:`, or by a path with a slash.
/// - A backup is named by its path.
/// - If a path with a slash may be a device or a backup, its content decides.
/// - If a name without a slash may be either, it is rejected if it names both a device and another file in the working
///   directory.
///
/// The file system is accessed only through closures, so that tests need no files.
struct ArgumentResolver {
  /// The path of the device folder. If it is `nil`, only a path can name a device.
  let deviceFolder: String?
  /// Returns the kind of file at a path.
  let content: (String) -> PathContent
  /// Returns the names of the devices in the device folder, for suggestions.
  let deviceNames: () -> [String]
  /// Returns the path of the backup that an argument such as `FOLDER/IDENTIFIER` selects in a folder of several backups;
  /// `nil` if it selects none.
  var selectedBackup: (String) throws(CommandError) -> String? = { (_) throws(CommandError) in nil }
  /// Returns the path of the only backup in a folder; `nil` if the folder has none or several, or is itself a backup.
  var onlyBackup: (String) throws(CommandError) -> String? = { (_) throws(CommandError) in nil }
  /// Returns whether two paths lead to the same file or folder.
  var isSameFile: (String, String) -> Bool = { $0 == $1 }

  /// Finds an existing device.
  func device(_ argument: String) throws(CommandError) -> KeychainLocation {
    if argument.contains("/"), !argument.hasPrefix("device:") {
      switch content(argument) {
      case .device: return .device(name: lastComponent(argument), directory: argument)
      case .absent:
        try rejectInvalidUTF8(argument)
        throw notFound("\(argument) does not exist")
      case .databaseDirectory:
        throw CommandError(
          .notFound, "\(argument) is not a device", why: "it is the directory of a Simulator or of another keychain",
          try: "keyhaul simulator seed \(ShellQuoting.quote(argument)) --from BACKUP")
      case .file, .possibleDump, .directory:
        throw CommandError(
          .notFound, "\(argument) is not a device", why: "it has no device.json", try: "keyhaul device list")
      }
    }
    let name = try deviceName(argument)
    guard deviceFolder != nil else { throw DeviceFolder.missingError }
    guard let directory = directory(ofDevice: name) else {
      throw notFound(
        "there is no device named \(name)", suggesting: EditDistance.nearest(to: name, among: deviceNames()))
    }
    return .device(name: name, directory: directory)
  }

  /// Finds a backup to read. The argument may also be a file inside the backup, or a folder that contains exactly one
  /// backup.
  ///
  /// - Returns: The backup, or a dump or device if the argument names one. The content of a backup is not checked here.
  /// - Throws: `.notFound` if nothing has this name; `.usage` for an empty or ambiguous name.
  func backup(_ argument: String) throws(CommandError) -> KeychainLocation {
    guard !argument.isEmpty else { throw .usage("the backup's name is empty", try: "the path of a backup") }
    if argument == "-" { return .standardInput }
    let pathContent = content(argument)
    if pathContent == .file || pathContent == .possibleDump, let backup = backup(containing: argument) {
      return .backup(path: backup)
    }
    switch pathContent {
    case .file: return .backup(path: argument)
    case .directory: return .backup(path: try onlyBackup(argument) ?? argument)
    case .possibleDump: return .dump(path: argument)
    case .databaseDirectory(let databases):
      guard databases.count == 1, let database = databases.first else {
        throw .usage(
          "\(argument) has more than one keychain", why: HumanReadable.list(databases), try: "name one of the files")
      }
      return .dump(path: database)
    case .device: return .device(name: lastComponent(argument), directory: argument)
    case .absent:
      if let directory = directory(ofDevice: argument) { return .device(name: argument, directory: directory) }
      if let path = try selectedBackup(argument) { return .backup(path: path) }
      throw CommandError(
        .notFound, "\(argument) does not exist", why: "no file or folder has this name",
        try: "check the path")
    }
  }

  /// Returns the backup that a file belongs to, judging by its name and the files next to it; `nil` if it belongs to
  /// none.
  private func backup(containing file: String) -> String? {
    let parts = file.split(separator: "/", omittingEmptySubsequences: false)
    // A backup's files are directly in its folder ("Manifest.db") or in a subfolder ("3d/3d0d7e5f…").
    for depth in 1...2 where parts.count >= depth && BackupPath.isBackupFile(parts.suffix(depth)) {
      let parent = parts.count == depth ? "." : parts.dropLast(depth).joined(separator: "/")
      let backup = parent.isEmpty ? "/" : parent
      // The name proves nothing by itself, so the folder must contain another file of a backup.
      let otherFiles = ["Manifest.plist", "Manifest.db", "Manifest.mbdb", "Status.plist"].filter {
        $0 != parts.last ?? ""
      }
      if otherFiles.contains(where: { content("\(backup)/\($0)") != .absent }) { return backup }
    }
    return nil
  }

  /// Finds a device or a backup.
  func deviceOrBackup(_ argument: String) throws(CommandError) -> KeychainLocation {
    if argument == "-" { return .standardInput }
    if argument.hasPrefix("device:") { return try device(argument) }
    if argument.contains("/") {
      return content(argument) == .device ? try device(argument) : try backup(argument)
    }
    let directory = directory(ofDevice: argument)
    let isFile = content(argument) != .absent
    switch (directory, isFile) {
    case (let directory?, _):
      // The file may be the device itself, for example if the device folder is the working directory.
      guard !isFile || isSameFile(directory, argument) else {
        throw .usage(
          "\(argument) is both a device and a file here", why: "the name alone is ambiguous",
          try: "device:\(argument) or ./\(argument)")
      }
      return .device(name: argument, directory: directory)
    case (nil, true): return content(argument) == .device ? try device("./\(argument)") : try backup(argument)
    case (nil, false):
      if let path = try selectedBackup(argument) { return .backup(path: path) }
      throw notFound(
        "there is no device or file named \(argument)",
        suggesting: EditDistance.nearest(to: argument, among: deviceNames()))
    }
  }

  /// Returns the folder of the device with the given name; `nil` if the device folder has no such device.
  private func directory(ofDevice name: String) -> String? {
    guard let deviceFolder, DeviceName.isValid(name) else { return nil }
    let directory = "\(deviceFolder)/\(name)"
    return content(directory) == .device ? directory : nil
  }

  /// Returns the device name in an argument, without the prefix `device:`. The device need not exist.
  ///
  /// - Throws: `.usage` if a device cannot have this name.
  func deviceName(_ argument: String) throws(CommandError) -> String {
    let name = argument.hasPrefix("device:") ? String(argument.dropFirst("device:".count)) : argument
    try rejectInvalidUTF8(name)
    guard DeviceName.isValid(name) else {
      throw .usage(
        "\"\(UntrustedText.shortened(name, columns: 60))\" cannot be a device's name",
        why: "a name has up to 64 letters, digits, \".\", \"_\" and \"-\", and begins with a letter or digit",
        try: "a name such as old-phone")
    }
    return name
  }

  /// Rejects a name with U+FFFD, which may stand for invalid UTF-8. The original bytes are unknown, so the name could
  /// match another device.
  private func rejectInvalidUTF8(_ name: String) throws(CommandError) {
    guard name.unicodeScalars.contains("\u{FFFD}") else { return }
    throw .usage(
      "\"\(UntrustedText.shortened(name, columns: 60))\" cannot be a device's name",
      why: "it contains invalid UTF-8 or the replacement character U+FFFD; Keyhaul never gives a device such a name",
      try: "rename its folder with mv and use the new name, or remove the folder with rm -r")
  }

  private func notFound(_ message: String, suggesting similarName: String? = nil) -> CommandError {
    let reason =
      deviceFolder.map { "Keyhaul looks for devices in \($0)" } ?? "HOME is not set, so Keyhaul looks for no devices"
    return CommandError(
      .notFound, message, why: similarName.map { "\"\($0)\" is similar" } ?? reason,
      try: similarName ?? (deviceFolder == nil ? "check the path, or --home DIR" : "keyhaul device list"))
  }

  private func lastComponent(_ path: String) -> String {
    path.split(separator: "/").last { $0 != "." }.map(String.init) ?? path
  }
}

extension ArgumentResolver {
  /// Creates a resolver that uses the real file system.
  ///
  /// - Parameter deviceFolder: The path of the device folder; `nil` if none is configured.
  init(deviceFolder: String?) {
    self.init(
      deviceFolder: deviceFolder, content: PathContent.init(of:),
      deviceNames: {
        guard let deviceFolder else { return [] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: deviceFolder)) ?? []
        return names.filter { DeviceName.isValid($0) && PathContent(of: "\(deviceFolder)/\($0)") == .device }.sorted()
      },
      selectedBackup: { (path) throws(CommandError) in
        try BackupDirectoryResolver.path(path, backups: BackupDirectoryResolver.backups)
      },
      onlyBackup: { (path) throws(CommandError) in
        guard case .one(let backup) = try BackupQueue.content(of: path) else { return nil }
        return backup
      },
      isSameFile: { first, second in
        guard let first = OutputFile.status(at: first), let second = OutputFile.status(at: second) else {
          return false
        }
        return first.isSame(as: second)
      })
  }
}
