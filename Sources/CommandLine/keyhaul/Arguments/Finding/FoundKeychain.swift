import KeyhaulKit

/// What an argument means that names a device, an archive or a dump, looked up once: verbs pass this on, never the text
/// again.
enum FoundKeychain {
  case device(FoundDevice)
  case archive(FoundArchive)
  /// Another tool's dump or a keychain's own database, its form recognized.
  case dump(FoundDump)

  var isDevice: Bool { if case .device = self { true } else { false } }
  /// Whether it is a keychain's own database.
  var isDatabase: Bool { if case .dump(let found) = self { found.isDatabase } else { false } }
  var isArchive: Bool { if case .archive = self { true } else { false } }

  /// What is read of it, which no result may replace.
  var files: [String] {
    switch self {
    case .device(let device): device.files
    case .archive(let archive): archive.files
    case .dump(let dump): dump.files
    }
  }

  /// What a command says for it; `nil` for a stream, which nobody can type again.
  var word: String? {
    switch self {
    case .device(let device): device.word
    case .archive(let archive): archive.path == nil ? nil : archive.typed
    case .dump(let dump): dump.typed
    }
  }
}

/// Looks up what the arguments of a command mean.
struct ArgumentFinder {
  private let resolver: ArgumentResolver
  private let session: Session
  private let databaseKeys: DatabaseKeyOptions?

  /// - Parameter databaseKeys: What opens a keychain's own database, of a verb that takes one.
  init(_ session: Session, _ databaseKeys: DatabaseKeyOptions? = nil) throws(CommandFailure) {
    let home = try session.homeDirectoryIfAny()
    if let home { DeviceSet(path: home, environment: .interruptible).clearLeftovers() }
    resolver = ArgumentResolver(home: home)
    self.session = session
    self.databaseKeys = databaseKeys
  }

  /// A device that must exist.
  ///
  /// - Throws: `.notFound` with the near name, `.usage` for what cannot be a name.
  func device(_ typed: String) throws(CommandFailure) -> FoundDevice {
    guard case .device(let name, let directory) = try resolver.device(typed) else {
      throw .usage("\(typed) is not a device", try: "keyhaul device list")
    }
    return try FoundDevice(typed: typed, name: name, directory: directory, session)
  }

  /// An archive to read.
  ///
  /// - Throws: `.usage` for a device.
  func archive(_ typed: String) throws(CommandFailure) -> FoundArchive {
    switch try resolver.archive(typed) {
    case .archive(let path): return archive(typed, at: path)
    case .standardInput: return FoundArchive(typed: typed, path: nil)
    case .dump(let path): throw try FoundDump(typed: typed, path: path, databaseKeys, in: session).refusal
    case .device(let name, _): throw FoundArchive.isDevice(name)
    }
  }

  /// The archive at a path, which may be another one than the user typed: then messages call it by its own.
  private func archive(_ typed: String, at path: String) -> FoundArchive {
    // An identifier that chooses a backup stays as it was typed.
    let content = path == typed ? .absent : PathContent(of: typed)
    guard content != .absent else { return FoundArchive(typed: typed, path: path) }
    let names = (UntrustedText.escaped(typed), UntrustedText.escaped(path))
    session.note(
      content == .directory
        ? "\(names.0) contains one backup: \(names.1)" : "\(names.0) is a file of the backup \(names.1)")
    return FoundArchive(typed: path, path: path)
  }

  /// An archive or a dump, where a verb takes either and no device.
  ///
  /// - Throws: `.usage` for a device.
  func archiveOrDump(_ typed: String) throws(CommandFailure) -> FoundKeychain {
    guard case .dump(let path) = try resolver.archive(typed) else { return .archive(try archive(typed)) }
    return .dump(try FoundDump(typed: typed, path: path, databaseKeys, in: session))
  }

  /// A device, an archive or a dump, where a verb takes any of them.
  func keychain(_ typed: String) throws(CommandFailure) -> FoundKeychain {
    switch try resolver.deviceOrArchive(typed) {
    case .device(let name, let directory):
      .device(try FoundDevice(typed: typed, name: name, directory: directory, session))
    case .archive(let path): .archive(archive(typed, at: path))
    case .dump(let path): .dump(try FoundDump(typed: typed, path: path, databaseKeys, in: session))
    case .standardInput: .archive(FoundArchive(typed: typed, path: nil))
    }
  }

  /// A Simulator's keychain, where a device is asked for and one may be meant.
  ///
  /// - Returns: `nil` for everything else, a device among it.
  func simulator(_ typed: String) throws(CommandFailure) -> FoundDump? {
    guard case .dump(let path)? = try? resolver.deviceOrArchive(typed) else { return nil }
    let found = try FoundDump(typed: typed, path: path, databaseKeys, in: session)
    return found.isDatabase ? found : nil
  }

  /// The name of a device that is made; it need not exist.
  func newDeviceName(_ typed: String) throws(CommandFailure) -> String { try resolver.deviceName(typed) }
}

extension TargetDevice {
  /// Looks the device up; a verb does so once, and holds it as often as it has to.
  func find(in session: Session) throws(CommandFailure) -> FoundDevice {
    try ArgumentFinder(session).device(device)
  }
}

extension DatabaseKeyOptions {
  /// Refuses the keys where nothing that is meant is a keychain's own database.
  func check(_ found: [FoundKeychain]) throws(CommandFailure) {
    guard classKeysFile != nil, !found.contains(where: \.isDatabase) else { return }
    throw .usage(
      "--class-keys-file applies only to a keychain database", why: "the argument is not a keychain-2.db",
      try: "leave --class-keys-file out")
  }
}
