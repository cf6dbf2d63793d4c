import Foundation
import KeyhaulKit

extension Session {
  /// Before a report is written: it must not take the place of what is read, and a file that stands there only goes
  /// after a yes.
  ///
  /// - Parameter asks: Whether it will be written; a dry run looks and does not ask.
  func prepareOutput(_ output: String, inputs: [String?], asks: Bool = true) throws(CommandFailure) {
    try requireOutput(output, differsFrom: inputs)
    try ReportFile.requireRegularFile(output)
    guard asks, ReportFile.standing(at: output) != nil else { return }
    try confirm("Replace \(output)?", refusal: "replacing \(output)")
  }

  /// Refuses an output that is one of the inputs or lies in one, and one in the folder of any device: what stands there
  /// is the device, and would be lost, or deleted with it.
  ///
  /// - Parameters:
  ///   - inputs: What is read. The file of `KEYHAUL_PASSWORD_FILE` is one, whoever reads it.
  ///   - flag: What names the output.
  func requireOutput(
    _ output: String, differsFrom inputs: [String?], after flag: String = "-o"
  ) throws(CommandFailure) {
    let files = (inputs + [environment["KEYHAUL_PASSWORD_FILE"]]).compactMap(\.self).filter { !["", "-"].contains($0) }
    try ReportFile.check(output, differsFrom: files, after: flag)
    guard let device = Self.device(around: output) else { return }
    throw .usage(
      "\(output) is in the folder of the device \(device)",
      why: "that folder belongs to the device: the file would overwrite part of it or be deleted with it",
      try: "another path after \(flag)")
  }

  /// The device in whose folder a path lies, or whose folder it is, by whatever names.
  private static func device(around path: String) -> String? {
    let parent = URL(filePath: path).deletingLastPathComponent().resolvingSymlinksInPath()
    var place = URL(filePath: path).resolvingSymlinksInPath().standardizedFileURL
    if !place.path.hasPrefix(parent.path) { place = parent }
    while place.path != "/", place.path != "" {
      let home = DeviceSet(path: place.deletingLastPathComponent().path, environment: .interruptible)
      if let name = try? DeviceName(place.lastPathComponent), (try? home.isDevice(name)) == true { return name.text }
      place.deleteLastPathComponent()
    }
    return nil
  }
}
