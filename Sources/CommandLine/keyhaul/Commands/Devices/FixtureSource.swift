import Foundation
import KeyhaulKit

/// Where `--from` finds the description of a device.
enum FixtureSource {
  /// The descriptions that the program carries, for help: "old-phone, new-phone or hostile-names".
  static let bundledNames = Amounts.list(BundledFixtures.names, conjunction: "or")

  /// What unlocks the devices of the bundled descriptions, which are invented and hold nothing real.
  static let passcodes =
    "The passcode is 135790 on old-phone, 2468 on new-phone, 1357 on every-rule and 2468 on every-rule-target; "
    + "hostile-names has none."

  /// A description, and what was typed for it.
  struct Loaded {
    let argument: String
    let description: DeviceFixture
  }

  /// A bundled description by its name, or else a file by its path.
  ///
  /// - Throws: `.notFound` with the near name; `.usage` for a file that describes no device; `.refused` for a version
  ///   that is not read.
  static func load(_ argument: String) throws(CommandFailure) -> Loaded {
    let bytes: [UInt8]
    if let bundled = BundledFixtures.bytes(named: argument) {
      bytes = bundled
    } else {
      bytes = try readFile(argument)
    }
    do throws(VirtualDeviceError) {
      return Loaded(argument: argument, description: try DeviceFixture(decoding: bytes, from: argument))
    } catch {
      throw failure(error, argument: argument)
    }
  }

  /// What is wrong with a description, also where only the device that is made of it refuses it.
  static func failure(_ error: VirtualDeviceError, argument: String) -> CommandFailure {
    CommandFailure(
      CommandStatus(error.category), "cannot make a device from \(argument): \(error.summary)", why: error.reason,
      try: error.call)
  }

  private static func readFile(_ path: String) throws(CommandFailure) -> [UInt8] {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      let near = EditDistance.nearest(to: path, among: BundledFixtures.names)
      throw CommandFailure(
        .notFound, "there is no description named \(path)",
        why: near.map { "\"\($0)\" is similar" } ?? "it is not a file, and \(bundledNames) come with the program",
        try: "--from \(near ?? BundledFixtures.names.first ?? "FILE")")
    }
    do {
      if isDirectory.boolValue { throw CocoaError(.fileReadUnknown) }
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      defer { try? file.close() }
      // One portion more than is accepted, so that the decoder sees that there is more.
      var bytes: [UInt8] = []
      while bytes.count <= DeviceFixture.maximumByteCount, let portion = try file.read(upToCount: 1 << 20),
        !portion.isEmpty
      {
        bytes += portion
      }
      return bytes
    } catch {
      throw CommandFailure(
        .failed, "cannot read \(path)", why: isDirectory.boolValue ? "it is a folder" : "the file system refused",
        try: "a file that can be read")
    }
  }
}
