import Foundation
import KeyhaulKit

/// Loads the device description that `--from` names.
enum FixtureSource {
  /// The names of the bundled descriptions, for help: "old-phone, new-phone or hostile-names".
  static let bundledNames = HumanReadable.list(BundledFixtures.names, conjunction: "or")

  /// A sentence for help that states the passcodes of the bundled descriptions. Their data is invented.
  static let passcodes =
    "The passcode is 135790 on old-phone, 2468 on new-phone, 1357 on every-rule and 2468 on every-rule-target; "
    + "hostile-names has none."

  /// A description and the argument that named it.
  struct Loaded {
    let argument: String
    let description: DeviceFixture
  }

  /// Loads a bundled description by name, or a file by path.
  ///
  /// - Throws: `.notFound` with a suggestion; `.usage` for a file that does not describe a device; `.refused` for an
  ///   unsupported version.
  static func load(_ argument: String) throws(CommandError) -> Loaded {
    let bytes: [UInt8]
    if let bundled = BundledFixtures.bytes(named: argument) {
      bytes = bundled
    } else {
      bytes = try readFile(argument)
    }
    do throws(KeyhaulError) {
      return Loaded(argument: argument, description: try DeviceFixture(decoding: bytes, from: argument))
    } catch {
      throw commandError(for: error, argument: argument)
    }
  }

  /// Returns the error for a faulty description. Some faults are found only when the device is created.
  static func commandError(for error: KeyhaulError, argument: String) -> CommandError {
    CommandError(
      CommandExitStatus(error.category), "cannot make a device from \(argument): \(error.summary)", why: error.reason,
      try: error.commandLineAdvice, of: error.errno)
  }

  private static func readFile(_ path: String) throws(CommandError) -> [UInt8] {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      let similarName = EditDistance.nearest(to: path, among: BundledFixtures.names)
      throw CommandError(
        .notFound, "there is no description named \(path)",
        why: similarName.map { "\"\($0)\" is similar" }
          ?? "it is neither a file nor bundled with Keyhaul (\(bundledNames))",
        try: "--from \(similarName ?? BundledFixtures.names.first ?? "FILE")")
    }
    do {
      if isDirectory.boolValue { throw CocoaError(.fileReadUnknown) }
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      defer { try? file.close() }
      // Reads past the maximum, so that the decoder rejects a file that is too long.
      var bytes: [UInt8] = []
      while bytes.count <= DeviceFixture.maximumByteCount, let chunk = try file.read(upToCount: 1 << 20),
        !chunk.isEmpty
      {
        bytes += chunk
      }
      return bytes
    } catch {
      throw CommandError(
        .failed, "cannot read \(path)", why: isDirectory.boolValue ? "it is a folder" : "the file system refused",
        try: "a file that can be read")
    }
  }
}
