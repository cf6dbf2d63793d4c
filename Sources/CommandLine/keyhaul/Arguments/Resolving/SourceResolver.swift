import KeyhaulKit

/// Finds the devices, backups and dumps that the arguments of a command name.
struct SourceResolver {
  private let resolver: ArgumentResolver
  private let session: Session
  private let databaseKeys: DatabaseKeyOptions?

  /// Creates a resolver.
  ///
  /// - Parameter databaseKeys: The options with keys for a keychain database; `nil` if the command accepts none.
  init(_ session: Session, _ databaseKeys: DatabaseKeyOptions? = nil) throws(CommandError) {
    let deviceFolder = try session.optionalDeviceFolder()
    if let deviceFolder { DeviceSet(path: deviceFolder, environment: .interruptible).clearLeftovers() }
    resolver = ArgumentResolver(deviceFolder: deviceFolder)
    self.session = session
    self.databaseKeys = databaseKeys
  }

  /// Finds an existing device.
  ///
  /// - Throws: `.notFound` with a suggestion; `.usage` for an invalid name.
  func device(_ argument: String) throws(CommandError) -> ResolvedDevice {
    guard case .device(let name, let directory) = try resolver.device(argument) else {
      throw .usage("\(argument) is not a device", try: "keyhaul device list")
    }
    return try ResolvedDevice(argument: argument, name: name, directory: directory, session)
  }

  /// Finds a backup to read.
  ///
  /// - Throws: `.usage` for a device.
  func backup(_ argument: String) throws(CommandError) -> ResolvedBackup {
    try backup(argument, from: try resolver.backup(argument))
  }

  /// Returns the backup at a location. Rejects any other keychain.
  private func backup(_ argument: String, from location: KeychainLocation) throws(CommandError) -> ResolvedBackup {
    switch location {
    case .backup(let path): return backup(argument, at: path)
    case .standardInput: return ResolvedBackup(argument: argument, path: nil)
    case .dump(let path):
      throw try ResolvedDump(argument: argument, path: path, databaseKeys, in: session).notABackupError
    case .device(let name, _): throw ResolvedBackup.deviceError(name)
    }
  }

  /// Returns the backup at a path. If the argument is a file in the backup or a folder around it, messages use the path.
  private func backup(_ argument: String, at path: String) -> ResolvedBackup {
    // Messages show the argument as typed if it is the path, or if it selects the backup by its name or identifier and so
    // is not itself a path.
    let content = path == argument ? .absent : PathContent(of: argument)
    guard content != .absent else { return ResolvedBackup(argument: argument, path: path) }
    let (source, backup) = (UntrustedText.escaped(argument), UntrustedText.escaped(path))
    session.info(
      content == .directory
        ? "\(source) contains one backup: \(backup)" : "\(source) is a file of the backup \(backup)")
    return ResolvedBackup(argument: path, path: path)
  }

  /// A source for a command that accepts no device.
  enum BackupOrDump {
    case backup(ResolvedBackup)
    case dump(ResolvedDump)
  }

  /// Finds a backup, a dump or a database. Rejects `--class-keys-file` if the source is not a keychain database.
  ///
  /// - Throws: `.usage` for a device.
  func backupOrDump(_ argument: String) throws(CommandError) -> BackupOrDump {
    let location = try resolver.backup(argument)
    guard case .dump(let path) = location else {
      let resolved = try backup(argument, from: location)
      try databaseKeys?.check([.backup(resolved)])
      return .backup(resolved)
    }
    let dump = try ResolvedDump(argument: argument, path: path, databaseKeys, in: session)
    try databaseKeys?.check([.dump(dump)])
    return .dump(dump)
  }

  /// Finds a device, a backup, a dump or a database.
  func keychain(_ argument: String) throws(CommandError) -> ResolvedSource {
    switch try resolver.deviceOrBackup(argument) {
    case .device(let name, let directory):
      .device(try ResolvedDevice(argument: argument, name: name, directory: directory, session))
    case .backup(let path): .backup(backup(argument, at: path))
    case .dump(let path): .dump(try ResolvedDump(argument: argument, path: path, databaseKeys, in: session))
    case .standardInput: .backup(ResolvedBackup(argument: argument, path: nil))
    }
  }

  /// Finds a keychain database, such as a Simulator's, for an argument that usually names a device.
  ///
  /// - Returns: `nil` if the argument is something else, such as a device.
  func simulator(_ argument: String) throws(CommandError) -> ResolvedDump? {
    guard case .dump(let path)? = try? resolver.deviceOrBackup(argument) else { return nil }
    let dump = try ResolvedDump(argument: argument, path: path, databaseKeys, in: session)
    return dump.isDatabase ? dump : nil
  }

  /// Returns the device name in an argument. Rejects a name that no device can have.
  func newDeviceName(_ argument: String) throws(CommandError) -> String { try resolver.deviceName(argument) }
}

extension TargetDevice {
  /// Finds the device. A command does this once.
  func find(in session: Session) throws(CommandError) -> ResolvedDevice {
    try SourceResolver(session).device(device)
  }
}

extension DatabaseKeyOptions {
  /// Rejects the keys if no argument is a keychain database.
  func check(_ sources: [ResolvedSource]) throws(CommandError) {
    guard classKeysFile != nil, !sources.contains(where: \.isDatabase) else { return }
    throw .usage(
      "--class-keys-file applies only to a keychain database", why: "the argument is not a keychain-2.db",
      try: "leave --class-keys-file out")
  }
}
