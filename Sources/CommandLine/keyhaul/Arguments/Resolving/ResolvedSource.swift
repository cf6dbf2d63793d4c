import KeyhaulKit

/// The device, backup or dump that an argument names. It is looked up once, and commands pass this value on instead of
/// the text.
enum ResolvedSource {
  case device(ResolvedDevice)
  case backup(ResolvedBackup)
  /// Another tool's dump, or a keychain database.
  case dump(ResolvedDump)

  var isDevice: Bool { if case .device = self { true } else { false } }
  /// Whether it is a keychain database.
  var isDatabase: Bool { if case .dump(let found) = self { found.isDatabase } else { false } }
  var isBackup: Bool { if case .backup = self { true } else { false } }

  /// The files that are read, which no output may replace.
  var files: [String] {
    switch self {
    case .device(let device): device.files
    case .backup(let backup): backup.files
    case .dump(let dump): dump.files
    }
  }

  /// The source as an argument of suggested commands; `nil` if it is a stream, which cannot be named again.
  var argument: String? {
    switch self {
    case .device(let device): device.argument
    case .backup(let backup): backup.path == nil ? nil : backup.typed
    case .dump(let dump): dump.typed
    }
  }
}

/// Looks up what the arguments of a command mean.
struct SourceResolver {
  private let resolver: ArgumentResolver
  private let session: Session
  private let databaseKeys: DatabaseKeyOptions?

  /// Creates a resolver.
  ///
  /// - Parameter databaseKeys: The options with keys for a keychain database; `nil` if the command accepts none.
  init(_ session: Session, _ databaseKeys: DatabaseKeyOptions? = nil) throws(CommandError) {
    let home = try session.optionalHomeDirectory()
    if let home { DeviceSet(path: home, environment: .interruptible).clearLeftovers() }
    resolver = ArgumentResolver(home: home)
    self.session = session
    self.databaseKeys = databaseKeys
  }

  /// Finds an existing device.
  ///
  /// - Throws: `.notFound` with a suggestion; `.usage` for an invalid name.
  func device(_ typed: String) throws(CommandError) -> ResolvedDevice {
    guard case .device(let name, let directory) = try resolver.device(typed) else {
      throw .usage("\(typed) is not a device", try: "keyhaul device list")
    }
    return try ResolvedDevice(typed: typed, name: name, directory: directory, session)
  }

  /// Finds a backup to read.
  ///
  /// - Throws: `.usage` for a device.
  func backup(_ typed: String) throws(CommandError) -> ResolvedBackup {
    switch try resolver.backup(typed) {
    case .backup(let path): return backup(typed, at: path)
    case .standardInput: return ResolvedBackup(typed: typed, path: nil)
    case .dump(let path): throw try ResolvedDump(typed: typed, path: path, databaseKeys, in: session).notABackupError
    case .device(let name, _): throw ResolvedBackup.deviceError(name)
    }
  }

  /// Returns the backup at a path. If the path differs from the argument, messages use the path.
  private func backup(_ typed: String, at path: String) -> ResolvedBackup {
    // An identifier that selects a backup stays as it was typed.
    let content = path == typed ? .absent : PathContent(of: typed)
    guard content != .absent else { return ResolvedBackup(typed: typed, path: path) }
    let names = (UntrustedText.escaped(typed), UntrustedText.escaped(path))
    session.info(
      content == .directory
        ? "\(names.0) contains one backup: \(names.1)" : "\(names.0) is a file of the backup \(names.1)")
    return ResolvedBackup(typed: path, path: path)
  }

  /// Finds a backup, a dump or a database.
  ///
  /// - Throws: `.usage` for a device.
  func backupOrDump(_ typed: String) throws(CommandError) -> ResolvedSource {
    guard case .dump(let path) = try resolver.backup(typed) else { return .backup(try backup(typed)) }
    return .dump(try ResolvedDump(typed: typed, path: path, databaseKeys, in: session))
  }

  /// Finds a device, a backup, a dump or a database.
  func keychain(_ typed: String) throws(CommandError) -> ResolvedSource {
    switch try resolver.deviceOrBackup(typed) {
    case .device(let name, let directory):
      .device(try ResolvedDevice(typed: typed, name: name, directory: directory, session))
    case .backup(let path): .backup(backup(typed, at: path))
    case .dump(let path): .dump(try ResolvedDump(typed: typed, path: path, databaseKeys, in: session))
    case .standardInput: .backup(ResolvedBackup(typed: typed, path: nil))
    }
  }

  /// Finds a Simulator's keychain, for an argument that usually names a device.
  ///
  /// - Returns: `nil` if the argument is something else, such as a device.
  func simulator(_ typed: String) throws(CommandError) -> ResolvedDump? {
    guard case .dump(let path)? = try? resolver.deviceOrBackup(typed) else { return nil }
    let found = try ResolvedDump(typed: typed, path: path, databaseKeys, in: session)
    return found.isDatabase ? found : nil
  }

  /// Returns a valid name for a new device.
  func newDeviceName(_ typed: String) throws(CommandError) -> String { try resolver.deviceName(typed) }
}

extension TargetDevice {
  /// Finds the device. A command does this once.
  func find(in session: Session) throws(CommandError) -> ResolvedDevice {
    try SourceResolver(session).device(device)
  }
}

extension DatabaseKeyOptions {
  /// Rejects the keys if no argument is a keychain database.
  func check(_ found: [ResolvedSource]) throws(CommandError) {
    guard classKeysFile != nil, !found.contains(where: \.isDatabase) else { return }
    throw .usage(
      "--class-keys-file applies only to a keychain database", why: "the argument is not a keychain-2.db",
      try: "leave --class-keys-file out")
  }
}
