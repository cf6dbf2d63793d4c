import Foundation

/// A kind of input under a fuzzer: what is done with bytes that may be anything, and examples of it to begin with.
public protocol FuzzedInput: RawRepresentable<String>, CaseIterable {
  /// Reads the bytes, and stops the process where what is read is not what it should be.
  func run(_ bytes: [UInt8])
  /// Valid ones, which the fuzzer begins with.
  func examples() throws -> [[UInt8]]
}

extension FuzzedInput {
  /// Stops the process, which is how a fuzzer is told of a finding.
  public func expect(_ condition: @autoclosure () throws -> Bool, _ sentence: String) {
    do {
      guard try condition() else { fatalError("\(rawValue): not so: \(sentence)") }
    } catch {
      fatalError("\(rawValue): \(sentence): \(error)")
    }
  }

  /// The kind that `KEYHAUL_FUZZED_INPUT` names.
  public static var chosen: Self {
    let name = ProcessInfo.processInfo.environment["KEYHAUL_FUZZED_INPUT"] ?? ""
    if let input = Self(rawValue: name) { return input }
    let names = allCases.map(\.rawValue).joined(separator: " ")
    FileHandle.standardError.write(Data("KEYHAUL_FUZZED_INPUT names none of: \(names)\n".utf8))
    exit(64)
  }

  /// Where `KEYHAUL_FUZZ_EXAMPLES` names a folder, writes the examples of all kinds into it, and ends.
  public static func writeExamplesIfAsked() {
    guard let folder = ProcessInfo.processInfo.environment["KEYHAUL_FUZZ_EXAMPLES"] else { return }
    do {
      for input in allCases {
        let own = URL(filePath: folder).appending(path: input.rawValue)
        try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
        for (number, example) in try input.examples().enumerated() {
          // Whatever is given as an example has to pass by itself.
          input.run(example)
          try Data(example).write(to: own.appending(path: "example-\(number)"))
        }
      }
    } catch {
      fatalError("no examples: \(error)")
    }
    exit(0)
  }
}
