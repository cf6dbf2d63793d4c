import Foundation
import KeyhaulKit

extension Session {
  /// Checks an output file before it is written. It must not be an input, and the user must agree to replace an
  /// existing file.
  ///
  /// - Parameter asks: Whether to ask before replacing a file. A dry run does not ask, because it writes nothing.
  func prepareOutput(_ output: String, inputs: [String?], asks: Bool = true) throws(CommandError) {
    try requireOutput(output, differsFrom: inputs)
    try OutputFile.requireRegularFile(output)
    guard asks, OutputFile.status(at: output) != nil else { return }
    try confirm("Replace \(output)?", action: "replacing \(output)")
  }

  /// Rejects an output that is an input, or that is inside an input or a device's folder, because it would damage them.
  ///
  /// - Parameters:
  ///   - output: The path to write.
  ///   - inputs: The paths that are read. `KEYHAUL_PASSWORD_FILE` is added in any case.
  ///   - flag: The flag with which the user named the output.
  func requireOutput(
    _ output: String, differsFrom inputs: [String?], after flag: String = "-o"
  ) throws(CommandError) {
    let files = (inputs + [environment["KEYHAUL_PASSWORD_FILE"]]).compactMap(\.self).filter { !["", "-"].contains($0) }
    try OutputFile.check(output, differsFrom: files, after: flag)
    guard let device = Self.device(around: output) else { return }
    throw .usage(
      "\(output) is in the folder of the device \(device)",
      why: "that folder belongs to the device: the file would overwrite part of it or be deleted with it",
      try: "another path after \(flag)")
  }

  /// Returns the device whose folder contains a path, with links resolved; `nil` if there is none.
  private static func device(around path: String) -> String? {
    let parent = URL(filePath: path).deletingLastPathComponent().resolvingSymlinksInPath()
    var location = URL(filePath: path).resolvingSymlinksInPath().standardizedFileURL
    // The path may itself be a link that leads elsewhere. Then the folder around the link counts.
    if !location.path.hasPrefix(parent.path) { location = parent }
    while location.path != "/", location.path != "" {
      let deviceSet = DeviceSet(path: location.deletingLastPathComponent().path, environment: .interruptible)
      if let name = try? DeviceName(location.lastPathComponent), (try? deviceSet.isDevice(name)) == true {
        return name.text
      }
      location.deleteLastPathComponent()
    }
    return nil
  }
}
