import ArgumentParser
import KeyhaulKit

/// What opens a backup.
///
/// The verbs have the two groups of flags side by side: while it is debugged, the argument parser checks a group within
/// a group several times as often as the group around it.
struct UnlockingOptions {
  let password: PasswordFlags
  let opening: OpeningOptions

  init(password: PasswordFlags, opening: OpeningOptions) {
    self.password = password
    self.opening = opening
  }

  /// Where a large list or keychain is kept while it is read.
  var storage: ManifestStorage { opening.storage }

  /// The files that secrets are read from, which no result may replace.
  var files: [String?] { [password.file, opening.deviceKeyFile] }

  /// Whether the user gave any of it.
  var isGiven: Bool { password.isGiven || opening.given != nil }

  /// Refuses all of it beside a device, of which nothing is opened.
  func refuse(for device: String) throws(CommandFailure) {
    try password.refuse(for: device)
    try opening.refuse(for: device)
  }
}

/// What opens a backup besides its password.
struct OpeningOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The hardware key (0x835) of the source device, 16 bytes.", valueName: "path"),
    completion: .file())
  var deviceKeyFile: String?

  @Option(
    name: .customLong("device-key-fd"),
    help: ArgumentHelp("Read the hardware key from an open file descriptor.", valueName: "number"))
  var deviceKeyDescriptor: Int32?

  @Option(
    help: ArgumentHelp("Accept at most this many PBKDF2 iterations (default 20,000,000).", valueName: "n"),
    transform: RoundCount.parse)
  var maxRounds: RoundCount?

  @Flag(help: StorageOptions.help) var memory = false

  /// How much work a backup may take where its password's key is derived.
  var rounds: Int { maxRounds?.value ?? IterationLimit.standard }

  /// Whether the user named the most rounds: nobody is asked about a count that is within them.
  var namesRounds: Bool { maxRounds != nil }

  /// Where a large list or keychain is kept while it is read.
  var storage: ManifestStorage { memory ? .memory : .temporaryFile }

  /// Where the device key is read from; `nil` if the user names no place.
  func deviceKeySource() throws(CommandFailure) -> SecretSource? {
    let source = try SecretSource.choose(
      .deviceKey, descriptor: deviceKeyDescriptor, file: deviceKeyFile, command: nil, environment: [:])
    return source == .prompt ? nil : source
  }

  /// The hardware key of the device that made a backup, where the user has one.
  func deviceKey(of subject: String, in session: Session) throws(CommandFailure) -> DeviceKey? {
    guard let source = try deviceKeySource() else { return nil }
    return try session.deviceKey(from: source, of: subject)
  }

  /// What of them shapes an answer.
  var asked: [String] {
    (deviceKeyFile != nil ? ["device key"] : []) + (maxRounds.map { ["--max-rounds \($0.value)"] } ?? [])
  }

  init() {}
}

extension OpeningOptions {
  /// The first flag that the user gave.
  fileprivate var given: String? {
    [
      deviceKeyFile.map { _ in "--device-key-file" }, deviceKeyDescriptor.map { _ in "--device-key-fd" },
      maxRounds.map { _ in "--max-rounds" }, memory ? "--memory" : nil,
    ].compactMap(\.self).first
  }

  /// Refuses what is about archives beside a device, of which nothing is opened.
  func refuse(for device: String) throws(CommandFailure) {
    guard let flag = given else { return }
    throw .usage("\(flag) applies only to backups", why: "\(device) is a device", try: "leave \(flag) out")
  }
}

extension SecretFlags<PasswordName> {
  /// Refuses a password beside a device, of which nothing is opened.
  func refuse(for device: String) throws(CommandFailure) {
    guard isGiven else { return }
    throw .usage(
      "a device needs no backup password", why: "\(device) is a device, not a backup",
      try: "leave the password out")
  }
}

/// How much room a backup may take.
struct StorageOptions: ParsableArguments {
  static let help: ArgumentHelp = "Keep a large manifest or keychain in memory, not in a temporary file."

  @Flag(help: StorageOptions.help) var memory = false

  /// Where a large list or keychain is kept while it is read.
  var storage: ManifestStorage { memory ? .memory : .temporaryFile }

  init() {}
}

/// A number of rounds of key derivation.
struct RoundCount: Equatable, Sendable {
  let value: Int

  init?(argument: String) {
    let digits = argument.replacing(",", with: "")
    guard digits.allSatisfy({ $0.isASCII && $0.isNumber }), let value = UInt32(digits), value > 0 else { return nil }
    self.value = Int(value)
  }

  struct OutOfRange: Error, CustomStringConvertible {
    let most: Int
    var description: String { "it must be a number from 1 to \(HumanReadable.grouped(most))" }
  }

  /// A limit of what is read: as many as a keybag's field has room for.
  @Sendable static func parse(_ argument: String) throws -> RoundCount {
    try parse(argument, atMost: Int(UInt32.max))
  }

  /// What a keybag is made with: as many as every reader accepts.
  @Sendable static func parseWritten(_ argument: String) throws -> RoundCount {
    try parse(argument, atMost: BackupKeybag.maximumRounds)
  }

  /// - Throws: What a number of rounds can be.
  private static func parse(_ argument: String, atMost most: Int) throws -> RoundCount {
    guard let count = RoundCount(argument: argument), count.value <= most else { throw OutOfRange(most: most) }
    return count
  }
}
