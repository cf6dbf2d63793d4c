import FuzzingSupport

/// What libFuzzer asks for, by these names.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(_ count: UnsafeMutablePointer<Int32>, _ arguments: UnsafeMutableRawPointer) -> Int32 {
  FuzzedArchive.writeExamplesIfAsked()
  _ = input
  return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
  input.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

private let input = FuzzedArchive.chosen
