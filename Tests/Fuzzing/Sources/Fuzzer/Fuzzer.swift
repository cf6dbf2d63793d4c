import Foundation

/// Prepares the fuzzer. libFuzzer calls this function and the next one by their names.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(_ count: UnsafeMutablePointer<Int32>, _ arguments: UnsafeMutableRawPointer) -> Int32 {
  Fuzzer.writeExamplesIfRequested()
  _ = Fuzzer.input
  return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
  Fuzzer.input.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

enum Fuzzer {
  private static let inputs: [any FuzzedInput] =
    FuzzedFormat.allCases + FuzzedArchive.allCases + FuzzedDatabase.allCases + FuzzedConversation.allCases

  /// The kind of input named by `KEYHAUL_FUZZED_INPUT`.
  static let input: any FuzzedInput = {
    let name = ProcessInfo.processInfo.environment["KEYHAUL_FUZZED_INPUT"] ?? ""
    if let input = inputs.first(where: { $0.rawValue == name }) { return input }
    let names = inputs.map { $0.rawValue }.joined(separator: " ")
    FileHandle.standardError.write(Data("KEYHAUL_FUZZED_INPUT must be one of: \(names)\n".utf8))
    exit(64)
  }()

  /// Writes the examples of all kinds to the folder named by `KEYHAUL_FUZZ_EXAMPLES` and exits, if that is set.
  static func writeExamplesIfRequested() {
    guard let folder = ProcessInfo.processInfo.environment["KEYHAUL_FUZZ_EXAMPLES"] else { return }
    do {
      for input in inputs {
        let inputFolder = URL(filePath: folder).appending(path: input.rawValue)
        try FileManager.default.createDirectory(at: inputFolder, withIntermediateDirectories: true)
        for (number, example) in try input.examples().enumerated() {
          // An example must pass and reach the code under test.
          input.run(example)
          input.expect(input.accepts(example), "example \(number) is accepted")
          try Data(example).write(to: inputFolder.appending(path: "example-\(number)"))
        }
      }
    } catch {
      fatalError("no examples: \(error)")
    }
    exit(0)
  }
}
