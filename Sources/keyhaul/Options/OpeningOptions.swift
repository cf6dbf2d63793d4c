import ArgumentParser
import BackupArchive
import DataProtection

/// What opens a backup besides its password.
struct OpeningOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The hardware key (0x835) of the device that made the backup, 16 bytes.", valueName: "path"),
    completion: .file())
  var deviceKeyFile: String?

  @Option(
    name: .customLong("device-key-fd"),
    help: ArgumentHelp("The same from an open file descriptor.", valueName: "number"))
  var deviceKeyDescriptor: Int32?

  @OptionGroup var limit: RoundLimitOptions

  /// Where the device key is read from; `nil` where the user names no place.
  func deviceKeySource() throws(CommandFailure) -> SecretSource? {
    let source = try SecretSource.choose(
      .deviceKey, descriptor: deviceKeyDescriptor, file: deviceKeyFile, command: nil, environment: [:])
    return source == .prompt ? nil : source
  }
}

/// How much work and room a backup may take.
struct RoundLimitOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The most rounds of key derivation to accept (default 20,000,000).", valueName: "n"))
  var maxRounds: RoundCount?

  var rounds: Int { maxRounds?.value ?? RoundLimit.standard }

  @Flag(help: "Keep a large list of files in memory, without a temporary file.") var memory = false

  /// Where a large list of files is kept while it is read.
  var storage: ManifestStorage { memory ? .memory : .temporaryFile }
}

/// A number of rounds of key derivation.
struct RoundCount: Equatable, Sendable, ExpressibleByArgument {
  let value: Int

  init?(argument: String) {
    let digits = argument.replacing(",", with: "")
    guard digits.allSatisfy({ $0.isASCII && $0.isNumber }), let value = UInt32(digits), value > 0 else { return nil }
    self.value = Int(value)
  }
}
