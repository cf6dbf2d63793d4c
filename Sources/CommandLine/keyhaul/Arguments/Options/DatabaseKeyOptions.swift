import ArgumentParser
import KeyhaulKit

/// The option with class keys for a keychain database that does not contain its own keys.
struct DatabaseKeyOptions: ParsableArguments {
  @Option(
    name: [.customLong("class-keys-file"), .customLong("class-keys")],
    help: ArgumentHelp(
      "Class keys for a device's keychain-2.db: a JSON object with 64 hexadecimal digits for each class from 6 to 12.",
      valueName: "path"),
    completion: .file())
  var classKeysFile: String?

  init() {}

  /// Returns the class keys; empty if no file was given.
  func keys(of subject: String, in session: Session) throws(CommandError) -> [KeyClass: SensitiveBytes] {
    guard let classKeysFile else { return [:] }
    let bytes = try session.classKeys(from: classKeysFile, of: subject)
    do throws(KeyhaulError) {
      return try ClassKeyFile.keys(in: bytes)
    } catch {
      throw CommandError(
        .refused, "\(classKeysFile) is not a class key file", why: error.reason,
        try: "{\"6\": \"64 hexadecimal digits\", \"7\": ...}")
    }
  }
}
