import ArgumentParser
import KeyhaulKit

/// The options for decrypting a backup, except the password.
struct DecryptionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The device key (0x835) of the source device, 16 bytes.", valueName: "path"),
    completion: .file())
  var deviceKeyFile: String?

  @Option(
    name: .customLong("device-key-fd"),
    help: ArgumentHelp("Read the device key from an open file descriptor.", valueName: "number"))
  var deviceKeyDescriptor: Int32?

  @Option(
    help: ArgumentHelp("Accept at most this many PBKDF2 iterations (default 20,000,000).", valueName: "n"),
    transform: IterationCount.parse)
  var maxRounds: IterationCount?

  @Flag(help: "Keep a large manifest or keychain in memory, not in a temporary file.") var memory = false

  /// The maximum number of PBKDF2 iterations.
  var maximumIterations: Int { maxRounds?.value ?? IterationLimit.standard }

  /// Whether the user set the maximum. If so, Keyhaul does not ask about an unusually high count.
  var hasIterationLimit: Bool { maxRounds != nil }

  /// The storage for a large manifest or keychain while it is read.
  var storage: ManifestStorage { memory ? .memory : .temporaryFile }

  /// Returns the source of the device key; `nil` if none was given.
  func deviceKeySource() throws(CommandError) -> SecretSource? {
    let source = try SecretSource.resolve(
      .deviceKey, descriptor: deviceKeyDescriptor, file: deviceKeyFile, command: nil, environment: [:])
    return source == .prompt ? nil : source
  }

  /// Reads the device key that was given; `nil` if none was given.
  func deviceKey(of subject: String, in session: Session) throws(CommandError) -> DeviceKey? {
    guard let source = try deviceKeySource() else { return nil }
    return try session.deviceKey(from: source, of: subject)
  }

  /// The given flags that can change a result, as text.
  var resultParameters: [String] {
    (deviceKeyFile != nil ? ["device key"] : []) + (maxRounds.map { ["--max-rounds \($0.value)"] } ?? [])
  }

  init() {}
}

extension DecryptionOptions {
  /// The name of the first flag that was given; `nil` if none was.
  var firstGivenFlag: String? {
    [
      deviceKeyFile.map { _ in "--device-key-file" }, deviceKeyDescriptor.map { _ in "--device-key-fd" },
      maxRounds.map { _ in "--max-rounds" }, memory ? "--memory" : nil,
    ].compactMap(\.self).first
  }

  /// Rejects these flags for a device, which is not decrypted.
  func reject(for device: String) throws(CommandError) {
    guard let flag = firstGivenFlag else { return }
    throw .usage("\(flag) applies only to backups", why: "\(device) is a device", try: "leave \(flag) out")
  }
}

extension SecretFlags<PasswordTag> {
  /// Rejects a password for a device, which is not decrypted.
  func reject(for device: String) throws(CommandError) {
    guard isGiven else { return }
    throw .usage(
      "a device needs no backup password", why: "\(device) is a device, not a backup",
      try: "leave the password out")
  }
}

/// The options for decrypting a backup.
///
/// Commands declare the two groups of flags separately and combine them here. If the groups were nested, the argument
/// parser would check them several times in debug builds.
struct BackupAccessOptions {
  let password: PasswordFlags
  let decryption: DecryptionOptions

  init(password: PasswordFlags, decryption: DecryptionOptions) {
    self.password = password
    self.decryption = decryption
  }

  /// The storage for a large manifest or keychain while it is read.
  var storage: ManifestStorage { decryption.storage }

  /// The files with secrets, which no output may replace.
  var files: [String?] { [password.file, decryption.deviceKeyFile] }

  /// Whether any of the flags was given.
  var isGiven: Bool { password.isGiven || decryption.firstGivenFlag != nil }

  /// Rejects the flags for a device, which is not decrypted.
  func reject(for device: String) throws(CommandError) {
    try password.reject(for: device)
    try decryption.reject(for: device)
  }
}

/// A command with the options for decrypting a backup.
protocol DecryptingCommand {
  var password: PasswordFlags { get }
  var decryption: DecryptionOptions { get }
}

extension DecryptingCommand {
  var accessOptions: BackupAccessOptions { BackupAccessOptions(password: password, decryption: decryption) }
}
